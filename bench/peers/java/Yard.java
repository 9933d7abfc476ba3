// SPDX-License-Identifier: MIT

// The yardstick on Java's virtual threads.
//
//     java -Djdk.virtualThreadScheduler.parallelism=W -Djdk.virtualThreadScheduler.maxPoolSize=W \
//          Yard <workload> workers=W [key=value ...]
//
// WORKLOADS.md says what each workload is. Workers are carrier threads, set by the caller; the
// measuring code is a virtual thread. Because the compiler learns while the program runs, a
// workload of short operations is run once with a tenth of its size before the clock starts.

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

final class Yard {
    private static final Map<String, String> params = new HashMap<>();
    private static final Long CLOSED = -1L;
    private static String workload;
    private static boolean warming;

    interface Work {
        void run() throws Exception;
    }

    static long arg(String key, long otherwise) {
        String v = params.get(key);
        return v == null ? otherwise : Long.parseLong(v);
    }

    /** How many operations: a tenth while the compiler warms up. */
    static long count(String key, long otherwise) {
        long n = arg(key, otherwise);
        return warming ? n / 10 : n;
    }

    static long now() {
        return System.nanoTime();
    }

    static long statusKb(String key) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status")))
            if (line.startsWith(key + ":")) return Long.parseLong(line.replaceAll("[^0-9]", ""));
        return 0;
    }

    static void report(long n, double ns, String more) throws IOException {
        if (warming) return;
        System.out.printf(
            "{\"peer\":\"java\",\"workload\":\"%s\",\"workers\":%d,\"n\":%d,\"ns_per_op\":%.2f,"
                + "\"ops_per_s\":%.0f,\"rss_kb\":%d,\"version\":\"%s\"%s}%n",
            workload, arg("workers", 1), n, ns, 1e9 / ns, statusKb("VmHWM"), Runtime.version(), more);
    }

    static String result(long v) {
        return ",\"result\":" + v;
    }

    static void check(boolean right, String what) {
        if (right) return;
        System.err.println("java: wrong result in " + what);
        Runtime.getRuntime().halt(4);
    }

    static Thread spawn(Work work) {
        return Thread.startVirtualThread(() -> {
            try {
                work.run();
            } catch (Exception e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(4);
            }
        });
    }

    static void join(Thread[] threads) throws InterruptedException {
        for (Thread t : threads) t.join();
    }

    // W1
    static void spawnJoin() throws Exception {
        long n = count("n", 1_000_000);
        int batch = (int) Math.min(n, arg("batch", 1000));
        Thread[] t = new Thread[batch];
        long t0 = now();
        for (long i = 0; i < n; i += batch) {
            for (int k = 0; k < batch; k++) t[k] = Thread.startVirtualThread(() -> {});
            join(t);
        }
        report(n, (double) (now() - t0) / n, "");
    }

    // W2
    static void yields() throws Exception {
        long n = count("n", 4_000_000);
        int tasks = (int) arg("tasks", 2);
        long each = n / tasks;
        Thread[] t = new Thread[tasks];
        long t0 = now();
        for (int i = 0; i < tasks; i++)
            t[i] = spawn(() -> {
                for (long k = 0; k < each; k++) Thread.yield();
            });
        join(t);
        report(n, (double) (now() - t0) / (each * tasks), "");
    }

    // W3
    static void pingpong() throws Exception {
        long n = count("n", 1_000_000);
        BlockingQueue<Long> a = new SynchronousQueue<>(), b = new SynchronousQueue<>();
        long[] last = new long[1];
        long t0 = now();
        Thread[] t = {
            spawn(() -> {
                for (long i = 0; i < n; i++) b.put(a.take() + 1);
            }),
            spawn(() -> {
                long v = 0;
                for (long i = 0; i < n; i++) {
                    a.put(v);
                    v = b.take();
                }
                last[0] = v;
            }),
        };
        join(t);
        long t1 = now();
        check(last[0] == n, "pingpong");
        report(n, (double) (t1 - t0) / n, result(n));
    }

    // W4: a queue cannot be closed; one last value for each consumer says so
    static void channel() throws Exception {
        long n = count("n", 4_000_000);
        int prod = (int) arg("prod", 1), cons = (int) arg("cons", 1);
        long each = n / prod;
        BlockingQueue<Long> ch = new ArrayBlockingQueue<>((int) arg("cap", 64));
        AtomicLong sum = new AtomicLong();
        Thread[] p = new Thread[prod], c = new Thread[cons];
        long t0 = now();
        for (int i = 0; i < prod; i++) {
            long from = i * each;
            p[i] = spawn(() -> {
                for (long v = from; v < from + each; v++) ch.put(v);
            });
        }
        for (int i = 0; i < cons; i++)
            c[i] = spawn(() -> {
                long s = 0;
                for (long v = ch.take(); v != CLOSED; v = ch.take()) s += v;
                sum.addAndGet(s);
            });
        join(p);
        for (int i = 0; i < cons; i++) ch.put(CLOSED);
        join(c);
        long t1 = now(), m = each * prod;
        check(sum.get() == m * (m - 1) / 2, "chan");
        report(n, (double) (t1 - t0) / n, result(sum.get()));
    }

    // W5
    static void mem() throws Exception {
        long n = arg("n", 100_000);
        String kind = params.getOrDefault("kind", "sleep");
        AtomicLong blocked = new AtomicLong();
        BlockingQueue<Long> ch = new ArrayBlockingQueue<>(64);
        System.gc();
        long before = statusKb("VmRSS"), t0 = now();
        for (long i = 0; i < n; i++)
            if (kind.equals("sleep"))
                spawn(() -> {
                    blocked.incrementAndGet();
                    Thread.sleep(120_000);
                });
            else
                spawn(() -> {
                    blocked.incrementAndGet();
                    ch.take();
                });
        while (blocked.get() < n) Thread.sleep(1);
        long t1 = now();
        Thread.sleep(300);
        long grown = statusKb("VmRSS") - before;
        report(n, (double) (t1 - t0) / n,
            ",\"kind\":\"" + kind + "\",\"bytes_per_task\":" + grown * 1024 / n);
    }

    // W6
    static final class Sky implements Work {
        final long first, leaves;
        long sum;

        Sky(long first, long leaves) {
            this.first = first;
            this.leaves = leaves;
        }

        public void run() throws Exception {
            if (leaves == 1) {
                sum = first;
                return;
            }
            Sky[] child = new Sky[10];
            Thread[] t = new Thread[10];
            for (int i = 0; i < 10; i++) {
                child[i] = new Sky(first + i * (leaves / 10), leaves / 10);
                t[i] = spawn(child[i]);
            }
            for (int i = 0; i < 10; i++) {
                t[i].join();
                sum += child[i].sum;
            }
        }
    }

    static void skynet() throws Exception {
        long n = count("n", 1_000_000);
        Sky root = new Sky(0, n);
        long t0 = now();
        spawn(root).join();
        long t1 = now();
        check(root.sum == n * (n - 1) / 2, "skynet");
        report(n, (double) (t1 - t0) / n, result(root.sum));
    }

    // W7
    static final class Fib implements Work {
        final int n;
        long value;

        Fib(int n) {
            this.n = n;
        }

        public void run() throws Exception {
            value = compute(n);
        }

        static long compute(int n) throws Exception {
            if (n < 2) return n;
            Fib left = new Fib(n - 1);
            Thread t = spawn(left);
            long right = compute(n - 2);
            t.join();
            return left.value + right;
        }
    }

    static long fibPlain(int n) {
        long a = 0, b = 1;
        for (; n > 0; n--) {
            long c = a + b;
            a = b;
            b = c;
        }
        return a;
    }

    static void fib() throws Exception {
        int n = (int) arg("n", 30) - (warming ? 5 : 0);
        Fib root = new Fib(n);
        long t0 = now();
        spawn(root).join();
        long t1 = now(), spawns = fibPlain(n + 1) - 1;
        check(root.value == fibPlain(n), "fib");
        report(spawns, (double) (t1 - t0) / spawns, result(root.value));
    }

    // W8
    static void timerCancel() throws Exception {
        int n = (int) arg("n", 1_000_000);
        Random random = new Random(1);
        int[] ms = new int[n];
        for (int i = 0; i < n; i++) ms[i] = 1 + random.nextInt(10_000);
        ScheduledThreadPoolExecutor timers = new ScheduledThreadPoolExecutor(1);
        timers.setRemoveOnCancelPolicy(true);
        ScheduledFuture<?>[] f = new ScheduledFuture<?>[n];
        Runnable nothing = () -> {};
        long t0 = now();
        for (int i = 0; i < n; i++) f[i] = timers.schedule(nothing, ms[i], TimeUnit.MILLISECONDS);
        long t1 = now();
        int fired = 0;
        for (int i = 0; i < n; i++)
            if (!f[i].cancel(false)) fired++;
        long t2 = now();
        report(n, (double) (t2 - t0) / n,
            String.format(",\"schedule_ns\":%.1f,\"cancel_ns\":%.1f,\"fired\":%d",
                (double) (t1 - t0) / n, (double) (t2 - t1) / n, fired));
    }

    static int saturate(long ns) {
        return (int) Math.max(0, Math.min(Integer.MAX_VALUE, ns));
    }

    static String percentiles(int[] v) {
        Arrays.sort(v);
        int n = v.length;
        return String.format(",\"min_ns\":%d,\"p50_ns\":%d,\"p99_ns\":%d,\"p999_ns\":%d", v[0],
            v[n / 2], v[(int) (n * 99L / 100)], v[(int) (n * 999L / 1000)]);
    }

    static void timerSleep() throws Exception {
        int tasks = (int) arg("tasks", 100_000), rounds = (int) arg("rounds", 100);
        long ms = arg("ms", 1);
        int[] late = new int[tasks * rounds];
        Thread[] t = new Thread[tasks];
        long t0 = now() + arg("warm_ms", 2000) * 1_000_000;
        for (int i = 0; i < tasks; i++) {
            int at = i * rounds;
            t[i] = spawn(() -> {
                Thread.sleep(Duration.ofNanos(Math.max(0, t0 - now())));
                for (int r = 0; r < rounds; r++) {
                    long a = now();
                    Thread.sleep(ms);
                    late[at + r] = saturate(now() - a - ms * 1_000_000);
                }
            });
        }
        join(t);
        long t1 = now(), n = (long) tasks * rounds;
        report(n, (double) (t1 - t0) / n,
            ",\"tasks\":" + tasks + ",\"rounds\":" + rounds + percentiles(late));
    }

    // W9
    static void mutex() throws Exception {
        int tasks = (int) arg("tasks", 1000);
        long iters = count("iters", 1000);
        ReentrantLock lock = new ReentrantLock();
        long[] counter = new long[1];
        Thread[] t = new Thread[tasks];
        long t0 = now();
        for (int i = 0; i < tasks; i++)
            t[i] = spawn(() -> {
                for (long k = 0; k < iters; k++) {
                    lock.lock();
                    counter[0]++;
                    lock.unlock();
                }
            });
        join(t);
        long t1 = now(), n = tasks * iters;
        check(counter[0] == n, "mutex");
        report(n, (double) (t1 - t0) / n, result(n));
    }

    // W10: an actor is a virtual thread with an unbounded queue as its mailbox
    static void actorPingpong() throws Exception {
        long n = count("n", 1_000_000), rounds = n / 2;
        BlockingQueue<Long> a = new LinkedBlockingQueue<>(), b = new LinkedBlockingQueue<>();
        long t0 = now();
        Thread[] t = {
            spawn(() -> {
                for (long i = 0; i < rounds; i++) b.put(a.take() + 1);
            }),
            spawn(() -> {
                long v = 0;
                for (long i = 0; i < rounds; i++) {
                    a.put(v);
                    v = b.take();
                }
                check(v == rounds, "actor_pingpong");
            }),
        };
        join(t);
        report(n, (double) (now() - t0) / n, result(rounds));
    }

    static void actorRing() throws Exception {
        long n = count("n", 1_000_000);
        int actors = (int) arg("actors", 503);
        BlockingQueue<Long>[] boxes = boxes(actors);
        BlockingQueue<Long> done = new LinkedBlockingQueue<>();
        for (int i = 0; i < actors; i++) {
            BlockingQueue<Long> in = boxes[i], out = boxes[(i + 1) % actors];
            spawn(() -> {
                for (;;) {
                    long k = in.take();
                    if (k == 0) {
                        done.put(k);
                        return;
                    }
                    out.put(k - 1);
                }
            });
        }
        long t0 = now();
        boxes[0].put(n);
        done.take();
        report(n, (double) (now() - t0) / n, "");
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static BlockingQueue<Long>[] noBoxes(int n) {
        return new BlockingQueue[n];
    }

    static BlockingQueue<Long>[] boxes(int n) {
        BlockingQueue<Long>[] boxes = noBoxes(n);
        for (int i = 0; i < n; i++) boxes[i] = new LinkedBlockingQueue<>();
        return boxes;
    }

    static void actorSpawn() throws Exception {
        int n = (int) arg("n", 1_000_000);
        BlockingQueue<Long>[] boxes = noBoxes(n);
        BlockingQueue<Long> reply = new LinkedBlockingQueue<>();
        System.gc();
        long before = statusKb("VmRSS"), t0 = now();
        for (int i = 0; i < n; i++) {
            BlockingQueue<Long> in = boxes[i] = new LinkedBlockingQueue<>();
            spawn(() -> reply.put(in.take() + 1));
        }
        long t1 = now(), grown = statusKb("VmRSS") - before, t2 = now(), sum = 0;
        spawn(() -> {
            for (int i = 0; i < n; i++) boxes[i].put((long) i);
        });
        for (int i = 0; i < n; i++) sum += reply.take();
        long t3 = now();
        check(sum == (long) n * (n - 1) / 2 + n, "actor_spawn");
        report(n, (double) (t1 - t0 + t3 - t2) / n,
            String.format(",\"spawn_ns\":%.1f,\"message_ns\":%.1f,\"bytes_per_actor\":%d",
                (double) (t1 - t0) / n, (double) (t3 - t2) / n, grown * 1024 / n) + result(sum));
    }

    static void actorFanin() throws Exception {
        long n = count("n", 4_000_000);
        int senders = (int) arg("senders", 8);
        long each = n / senders;
        BlockingQueue<Long> box = new LinkedBlockingQueue<>();
        long t0 = now();
        Thread sink = spawn(() -> {
            long s = 0;
            for (long i = 0; i < each * senders; i++) s += box.take();
            check(s == each * senders, "actor_fanin");
        });
        for (int i = 0; i < senders; i++)
            spawn(() -> {
                for (long k = 0; k < each; k++) box.put(1L);
            });
        sink.join();
        report(n, (double) (now() - t0) / n, "");
    }

    // W11
    static void wake() throws Exception {
        int n = (int) arg("n", 2000);
        long gap = arg("gap_us", 200) * 1000;
        int[] latency = new int[n];
        BlockingQueue<Long> ch = new ArrayBlockingQueue<>(1);
        AtomicLong stamp = new AtomicLong();
        spawn(() -> {
            for (;;) {
                ch.take();
                stamp.set(now());
            }
        });
        Thread.sleep(10);
        for (int i = 0; i < n; i++) {
            for (long end = now() + gap; now() < end; ) {
            }
            stamp.set(0);
            long a = now(), s;
            ch.put(1L);
            while ((s = stamp.get()) == 0) {
            }
            latency[i] = saturate(s - a);
        }
        String p = percentiles(latency);
        report(n, latency[n / 2], p);
    }

    static Work find(String name) {
        return switch (name) {
            case "spawn_join" -> Yard::spawnJoin;
            case "yield" -> Yard::yields;
            case "pingpong" -> Yard::pingpong;
            case "chan" -> Yard::channel;
            case "mem" -> Yard::mem;
            case "skynet" -> Yard::skynet;
            case "fib" -> Yard::fib;
            case "timer_cancel" -> Yard::timerCancel;
            case "timer_sleep" -> Yard::timerSleep;
            case "mutex" -> Yard::mutex;
            case "actor_pingpong" -> Yard::actorPingpong;
            case "actor_ring" -> Yard::actorRing;
            case "actor_spawn" -> Yard::actorSpawn;
            case "actor_fanin" -> Yard::actorFanin;
            case "wake" -> Yard::wake;
            default -> null;
        };
    }

    /** Those whose figure is a memory size or a lateness are measured cold, as they would be. */
    static boolean warmsUp(String name) {
        return !name.equals("mem") && !name.equals("actor_spawn") && !name.startsWith("timer_")
            && !name.equals("wake");
    }

    public static void main(String[] args) throws Exception {
        if (args.length == 0) {
            System.err.println("usage: Yard <workload> [key=value ...]");
            System.exit(2);
        }
        workload = args[0];
        for (String a : args) {
            int at = a.indexOf('=');
            if (at > 0) params.put(a.substring(0, at), a.substring(at + 1));
        }
        Work work = find(workload);
        if (work == null) {
            System.err.println("java: no workload " + workload);
            System.exit(3);
        }
        spawn(() -> {
            if (warmsUp(workload)) {
                warming = true;
                work.run();
                warming = false;
            }
            work.run();
            System.out.flush();
            Runtime.getRuntime().halt(0);
        }).join();
    }
}
