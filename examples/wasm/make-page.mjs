/* SPDX-License-Identifier: MIT */
/* make-page.mjs - one HTML file that needs no server: page.html with host.mjs and the module.
 *
 *     node make-page.mjs blink.wasm blink.html */
import {readFile, writeFile} from "node:fs/promises";

const [module, page] = process.argv.slice(2);
if (page === undefined) {
    console.error("usage: node make-page.mjs MODULE PAGE");
    process.exit(2);
}
const beside = (name) => readFile(new URL(name, import.meta.url), "utf8");

const parts = {
    host: await beside("host.mjs"),
    module: (await readFile(module)).toString("base64"),
};
const template = await beside("page.html");
await writeFile(page, template.replace(/\{\{(host|module)\}\}/g, (_, name) => parts[name]));
