/* SPDX-License-Identifier: MIT */
/* run-node.mjs - run blink.wasm in Node.
 *
 *     node run-node.mjs blink.wasm                       virtual time, the same every run
 *     node run-node.mjs blink.wasm --real                the time of the wall
 *     node run-node.mjs blink.wasm --presses=370,740     when the button is pressed, in ms
 *
 * Prints the log; the exit status is 0 if the program ended with a result. */
import {readFile} from "node:fs/promises";
import {Host, RealTime, VirtualTime} from "./host.mjs";

const [file, ...options] = process.argv.slice(2);
if (file === undefined) {
    console.error("usage: node run-node.mjs MODULE [--real] [--presses=MS,MS...]");
    process.exit(2);
}
const presses = options.find((option) => option.startsWith("--presses="))?.slice(10) ?? "370,740";
const time = options.includes("--real") ? new RealTime() : new VirtualTime();

const host = await Host.load(await readFile(file), {
    time,
    led: () => {}, // the log tells
    report: (text) => process.stdout.write(text),
});
for (const ms of presses.split(",").filter(Boolean)) host.pressWhen(time.sleep(Number(ms)));

const result = await host.run();
process.exitCode = result >= 0 ? 0 : 1;
