/* SPDX-License-Identifier: MIT */
/* host.mjs - the JavaScript side of blink.wasm: an event loop that polls coroutines.
 *
 *     const host = await Host.load(bytes, {time: new RealTime(), led, report});
 *     host.pressWhen(promise);              // promise in: it completes a future of C
 *     const presses = await host.run();     // promise out: the coroutine completes it
 *
 * Nothing waits inside the module. It says "poll me" (wake) or "poll me then" (arm); both
 * end in poll(), which runs the coroutines until each waits again, and returns.
 *
 * Time is the host's to supply: RealTime for people, VirtualTime for tests. */

export class Host {
    #wasm;
    #options;
    #alarm = null;       // {at, cancel}: the one timer, for the earliest time asked for
    #pollWanted = false; // a poll is scheduled; further wakes add nothing
    #done = null;        // {resolve, reject} of the promise that run() gave

    /* `options`: time, led(index, on), report(text). */
    static async load(bytes, options) {
        const host = new Host();
        host.#options = options;
        const {instance} = await WebAssembly.instantiate(bytes, {env: host.#imports()});
        host.#wasm = instance.exports;
        return host;
    }

    /* Start the program; the promise resolves with its result. Once. */
    run() {
        return new Promise((resolve, reject) => {
            this.#done = {resolve, reject};
            this.#wasm.start();
        });
    }

    /* Press the button when `promise` resolves. */
    async pressWhen(promise) {
        await promise;
        this.#wasm.press();
    }

    #imports() {
        const {time, led, report} = this.#options;
        return {
            now_ms: () => time.now(),
            arm: (delay) => this.#arm(time.now() + delay),
            wake: () => this.#wake(),
            led: (index, on) => led(index, on !== 0),
            report: (at, bytes) => report(this.#text(at, bytes)),
        };
    }

    #wake() {
        if (this.#pollWanted) return;
        this.#pollWanted = true;
        queueMicrotask(() => this.#poll());
    }

    #poll() {
        this.#pollWanted = false;
        try {
            if (!this.#wasm.poll()) return;
            this.#alarm?.cancel();
            this.#done.resolve(this.#wasm.result());
        } catch (error) { // a trap in the module, or a callback that threw
            this.#done.reject(error);
        }
    }

    #arm(at) {
        if (this.#alarm !== null && this.#alarm.at <= at) return;
        this.#alarm?.cancel();
        const cancel = this.#options.time.after(at - this.#options.time.now(), () => {
            this.#alarm = null;
            this.#wasm.alarm();
        });
        this.#alarm = {at, cancel};
    }

    #text(at, bytes) {
        return new TextDecoder().decode(new Uint8Array(this.#wasm.memory.buffer, at, bytes));
    }
}

/* The time of the wall. */
export class RealTime {
    now() {
        return performance.now();
    }

    /* Call `fn` in `ms`; gives a function that takes it back. */
    after(ms, fn) {
        const timer = setTimeout(fn, Math.ceil(Math.max(ms, 0)));
        return () => clearTimeout(timer);
    }

    /* A promise that resolves in `ms`. */
    sleep(ms) {
        return new Promise((resolve) => this.after(ms, resolve));
    }
}

/* Time that jumps to the next timer as soon as nothing else is left to do: every run is the
 * same, and quick. It stands still when no timer is left. */
export class VirtualTime extends RealTime {
    #now = 0;
    #timers = [];
    #running = false;

    now() {
        return this.#now;
    }

    after(ms, fn) {
        const timer = {at: this.#now + Math.max(ms, 0), fn};
        this.#timers.push(timer);
        if (!this.#running) {
            this.#running = true;
            setTimeout(() => this.#next(), 0); // behind all promises that are due
        }
        return () => this.#timers.splice(0, Infinity, ...this.#timers.filter((t) => t !== timer));
    }

    #next() {
        if (this.#timers.length === 0) {
            this.#running = false;
            return;
        }
        const timer = this.#timers.reduce((a, b) => (b.at < a.at ? b : a));
        this.#timers.splice(this.#timers.indexOf(timer), 1);
        this.#now = timer.at;
        setTimeout(() => this.#next(), 0);
        timer.fn();
    }
}
