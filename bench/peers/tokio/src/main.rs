// SPDX-License-Identifier: MIT

//! The yardstick on Tokio.
//!
//!     tokio <workload> [key=value ...]
//!
//! WORKLOADS.md says what each workload is. One line of JSON per run.
//! flavor=multi (default): the multi-thread scheduler with `workers` threads;
//! flavor=current: the single-threaded scheduler (reported as peer "tokio-ct").
//! Every workload runs inside a spawned task, never on the block_on thread.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

#[derive(Clone)]
struct Args {
    workload: String,
    kv: HashMap<String, String>,
    t0: Instant,
}

impl Args {
    fn n(&self, k: &str, def: u64) -> u64 {
        self.kv.get(k).map(|v| v.parse().expect(k)).unwrap_or(def)
    }
    fn s(&self, k: &str, def: &str) -> String {
        self.kv.get(k).cloned().unwrap_or_else(|| def.into())
    }
    fn now(&self) -> i64 {
        self.t0.elapsed().as_nanos() as i64
    }
    fn report(&self, n: u64, ns: f64, extra: &str) {
        let peer = match self.s("flavor", "multi").as_str() {
            "current" => "tokio-ct",
            _ => "tokio",
        };
        println!(
            "{{\"peer\":\"{}\",\"workload\":\"{}\",\"workers\":{},\"n\":{},\"ns_per_op\":{:.2},\"ops_per_s\":{:.0},\"rss_kb\":{},\"version\":\"{}\"{}}}",
            peer, self.workload, self.n("workers", 1), n, ns, 1e9 / ns, proc_kb("VmHWM:"),
            tokio_version(), extra
        );
    }
}

/// What Cargo.lock says.
fn tokio_version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let from = lock.find("name = \"tokio\"\n").expect("tokio in Cargo.lock");
    lock[from..].split('"').nth(3).expect("its version")
}

fn result(v: u64) -> String {
    format!(",\"result\":{}", v)
}

fn proc_kb(key: &str) -> i64 {
    let s = std::fs::read_to_string("/proc/self/status").unwrap();
    for l in s.lines() {
        if let Some(r) = l.strip_prefix(key) {
            return r.trim().trim_end_matches(" kB").parse().unwrap();
        }
    }
    0
}

fn rss_kb() -> i64 {
    proc_kb("VmRSS:")
}

fn check(ok: bool, what: &str) {
    if !ok {
        eprintln!("tokio: wrong result in {}", what);
        std::process::exit(4);
    }
}

fn sat(x: i64) -> u32 {
    x.clamp(0, u32::MAX as i64) as u32
}

fn percentiles(v: &mut [u32]) -> String {
    v.sort_unstable();
    let n = v.len();
    format!(",\"p50_ns\":{},\"p99_ns\":{},\"p999_ns\":{}", v[n / 2], v[n * 99 / 100], v[n * 999 / 1000])
}

// W1
async fn spawn_join(a: Args) {
    let (n, batch) = (a.n("n", 1_000_000), a.n("batch", 1000));
    let t0 = a.now();
    let mut hs = Vec::with_capacity(batch as usize);
    let mut i = 0;
    while i < n {
        for _ in 0..batch {
            hs.push(tokio::spawn(async {}));
        }
        for h in hs.drain(..) {
            h.await.unwrap();
        }
        i += batch;
    }
    a.report(n, (a.now() - t0) as f64 / n as f64, "");
}

// W2
async fn yields(a: Args) {
    let (n, tasks) = (a.n("n", 4_000_000), a.n("tasks", 2));
    let per = n / tasks;
    let t0 = a.now();
    let hs: Vec<_> = (0..tasks)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..per {
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for h in hs {
        h.await.unwrap();
    }
    a.report(n, (a.now() - t0) as f64 / (per * tasks) as f64, "");
}

// W3: capacity 1, Tokio has no rendezvous channel
async fn pingpong(a: Args) {
    let n = a.n("n", 1_000_000);
    let (atx, mut arx) = mpsc::channel::<u64>(1);
    let (btx, mut brx) = mpsc::channel::<u64>(1);
    let t0 = a.now();
    let h1 = tokio::spawn(async move {
        for _ in 0..n {
            let v = arx.recv().await.unwrap();
            btx.send(v + 1).await.unwrap();
        }
    });
    let h2 = tokio::spawn(async move {
        let mut v = 0;
        for _ in 0..n {
            atx.send(v).await.unwrap();
            v = brx.recv().await.unwrap();
        }
        v
    });
    h1.await.unwrap();
    let v = h2.await.unwrap();
    let t1 = a.now();
    check(v == n, "pingpong");
    a.report(n, (t1 - t0) as f64 / n as f64, &result(v));
}

// W4: tokio mpsc for one consumer, async-channel for several
async fn channel(a: Args) {
    let (n, p, c, cap) = (a.n("n", 4_000_000), a.n("prod", 1), a.n("cons", 1), a.n("cap", 64));
    let per = n / p;
    let mut hs = Vec::new();
    let mut rs = Vec::new();
    let t0 = a.now();
    if c == 1 {
        let (tx, mut rx) = mpsc::channel::<u64>(cap as usize);
        for i in 0..p {
            let tx = tx.clone();
            hs.push(tokio::spawn(async move {
                for k in 0..per {
                    tx.send(i * per + k).await.unwrap();
                }
            }));
        }
        drop(tx);
        rs.push(tokio::spawn(async move {
            let mut s = 0u64;
            while let Some(v) = rx.recv().await {
                s = s.wrapping_add(v);
            }
            s
        }));
    } else {
        let (tx, rx) = async_channel::bounded::<u64>(cap as usize);
        for i in 0..p {
            let tx = tx.clone();
            hs.push(tokio::spawn(async move {
                for k in 0..per {
                    tx.send(i * per + k).await.unwrap();
                }
            }));
        }
        drop(tx);
        for _ in 0..c {
            let rx = rx.clone();
            rs.push(tokio::spawn(async move {
                let mut s = 0u64;
                while let Ok(v) = rx.recv().await {
                    s = s.wrapping_add(v);
                }
                s
            }));
        }
    }
    for h in hs {
        h.await.unwrap();
    }
    let mut sum = 0u64;
    for r in rs {
        sum = sum.wrapping_add(r.await.unwrap());
    }
    let t1 = a.now();
    let m = per * p;
    check(sum == m * (m - 1) / 2, "chan");
    a.report(n, (t1 - t0) as f64 / n as f64, &result(sum));
}

// W5; recv: one shared Notify, Tokio has no many-receiver channel
async fn mem(a: Args) {
    let (n, kind) = (a.n("n", 100_000), a.s("kind", "sleep"));
    let blocked = Arc::new(AtomicU64::new(0));
    let notify = Arc::new(tokio::sync::Notify::new());
    let before = rss_kb();
    let t0 = a.now();
    for _ in 0..n {
        let b = blocked.clone();
        if kind == "sleep" {
            tokio::spawn(async move {
                b.fetch_add(1, Relaxed);
                tokio::time::sleep(Duration::from_secs(120)).await;
            });
        } else {
            let q = notify.clone();
            tokio::spawn(async move {
                b.fetch_add(1, Relaxed);
                q.notified().await;
            });
        }
    }
    while blocked.load(Relaxed) < n {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let t1 = a.now();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = rss_kb();
    a.report(n, (t1 - t0) as f64 / n as f64,
        &format!(",\"kind\":\"{}\",\"bytes_per_task\":{}", kind, (after - before) * 1024 / n as i64));
    std::process::exit(0);
}

// W6
fn sky(num: u64, size: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if size == 1 {
            return num;
        }
        let sub = size / 10;
        let mut hs = Vec::with_capacity(10);
        for i in 0..10 {
            hs.push(tokio::spawn(sky(num + i * sub, sub)));
        }
        let mut s = 0;
        for h in hs {
            s += h.await.unwrap();
        }
        s
    })
}

async fn skynet(a: Args) {
    let n = a.n("n", 1_000_000);
    let t0 = a.now();
    let s = tokio::spawn(sky(0, n)).await.unwrap();
    let t1 = a.now();
    check(s == n * (n - 1) / 2, "skynet");
    a.report(n, (t1 - t0) as f64 / n as f64, &result(s));
}

// W7
fn fib_task(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let h = tokio::spawn(fib_task(n - 1));
        let b = fib_task(n - 2).await;
        h.await.unwrap() + b
    })
}

fn fib_plain(n: u64) -> u64 {
    if n < 2 { n } else { fib_plain(n - 1) + fib_plain(n - 2) }
}

async fn fib(a: Args) {
    let n = a.n("n", 30);
    let t0 = a.now();
    let r = tokio::spawn(fib_task(n)).await.unwrap();
    let t1 = a.now();
    check(r == fib_plain(n), "fib");
    let spawns = fib_plain(n + 1) - 1;
    a.report(spawns, (t1 - t0) as f64 / spawns as f64, &result(r));
}

// W8: a timer is a Sleep future polled once (so that it is registered), then dropped
fn noop_waker() -> Waker {
    const VT: RawWakerVTable =
        RawWakerVTable::new(|_| RawWaker::new(std::ptr::null(), &VT), |_| {}, |_| {}, |_| {});
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VT)) }
}

async fn timer_cancel(a: Args) {
    let n = a.n("n", 1_000_000) as usize;
    let mut x = 1u64;
    let d: Vec<Duration> = (0..n)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            Duration::from_millis(1 + x % 10_000)
        })
        .collect();
    let w = noop_waker();
    let mut cx = Context::from_waker(&w);
    let mut v: Vec<Pin<Box<tokio::time::Sleep>>> = Vec::with_capacity(n);
    let mut fired = 0;
    let t0 = a.now();
    for i in 0..n {
        let mut s = Box::pin(tokio::time::sleep(d[i]));
        if let Poll::Ready(()) = s.as_mut().poll(&mut cx) {
            fired += 1;
        }
        v.push(s);
    }
    let t1 = a.now();
    for s in v.drain(..) {
        drop(s);
    }
    let t2 = a.now();
    let f = n as f64;
    a.report(n as u64, (t2 - t0) as f64 / f,
        &format!(",\"schedule_ns\":{:.1},\"cancel_ns\":{:.1},\"fired\":{}", (t1 - t0) as f64 / f, (t2 - t1) as f64 / f, fired));
}

async fn timer_sleep(a: Args) {
    let (tasks, rounds, ms, warm) = (a.n("tasks", 100_000), a.n("rounds", 100), a.n("ms", 1), a.n("warm_ms", 2000));
    let d = Duration::from_millis(ms);
    let t0 = a.now() + warm as i64 * 1_000_000;
    let mut hs = Vec::with_capacity(tasks as usize);
    for _ in 0..tasks {
        let a = a.clone();
        hs.push(tokio::spawn(async move {
            let mut l = vec![0u32; rounds as usize];
            tokio::time::sleep(Duration::from_nanos((t0 - a.now()).max(0) as u64)).await;
            for e in l.iter_mut() {
                let b = a.now();
                tokio::time::sleep(d).await;
                *e = sat(a.now() - b - ms as i64 * 1_000_000);
            }
            l
        }));
    }
    let mut late = Vec::with_capacity((tasks * rounds) as usize);
    let mut ls = Vec::with_capacity(tasks as usize);
    for h in hs {
        ls.push(h.await.unwrap());
    }
    let t1 = a.now();
    for l in ls {
        late.extend_from_slice(&l);
    }
    let n = tasks * rounds;
    let p = percentiles(&mut late);
    a.report(n, (t1 - t0) as f64 / n as f64, &format!(",\"tasks\":{},\"rounds\":{}{}", tasks, rounds, p));
}

// W9
async fn mutex(a: Args) {
    let (tasks, iters) = (a.n("tasks", 1000), a.n("iters", 1000));
    let m = Arc::new(tokio::sync::Mutex::new(0u64));
    let t0 = a.now();
    let hs: Vec<_> = (0..tasks)
        .map(|_| {
            let m = m.clone();
            tokio::spawn(async move {
                for _ in 0..iters {
                    *m.lock().await += 1;
                }
            })
        })
        .collect();
    for h in hs {
        h.await.unwrap();
    }
    let t1 = a.now();
    let n = tasks * iters;
    let sum = *m.lock().await;
    check(sum == n, "mutex");
    a.report(n, (t1 - t0) as f64 / n as f64, &result(sum));
}

// W10: an actor is a task with an unbounded mpsc receiver as its mailbox
async fn actor_pingpong(a: Args) {
    let n = a.n("n", 1_000_000);
    let (atx, mut arx) = mpsc::unbounded_channel::<u64>();
    let (btx, mut brx) = mpsc::unbounded_channel::<u64>();
    let t0 = a.now();
    let h1 = tokio::spawn(async move {
        for _ in 0..n / 2 {
            let v = arx.recv().await.unwrap();
            let _ = btx.send(v + 1);
        }
    });
    let h2 = tokio::spawn(async move {
        let mut v = 0;
        for _ in 0..n / 2 {
            let _ = atx.send(v);
            v = brx.recv().await.unwrap();
        }
    });
    h1.await.unwrap();
    h2.await.unwrap();
    a.report(n, (a.now() - t0) as f64 / n as f64, "");
}

async fn actor_ring(a: Args) {
    let (n, actors) = (a.n("n", 1_000_000), a.n("actors", 503) as usize);
    let (mut txs, mut rxs) = (Vec::new(), Vec::new());
    for _ in 0..actors {
        let (tx, rx) = mpsc::unbounded_channel::<u64>();
        txs.push(tx);
        rxs.push(rx);
    }
    let (dtx, mut drx) = mpsc::unbounded_channel::<u64>();
    for (i, mut rx) in rxs.into_iter().enumerate() {
        let next = txs[(i + 1) % actors].clone();
        let dtx = dtx.clone();
        tokio::spawn(async move {
            while let Some(k) = rx.recv().await {
                if k == 0 {
                    let _ = dtx.send(0);
                    return;
                }
                let _ = next.send(k - 1);
            }
        });
    }
    let t0 = a.now();
    let _ = txs[0].send(n);
    drx.recv().await;
    a.report(n, (a.now() - t0) as f64 / n as f64, "");
}

async fn actor_spawn(a: Args) {
    let n = a.n("n", 1_000_000);
    let mut boxes = Vec::with_capacity(n as usize);
    let (rtx, mut rrx) = mpsc::unbounded_channel::<u64>();
    let before = rss_kb();
    let t0 = a.now();
    for _ in 0..n {
        let (tx, mut rx) = mpsc::unbounded_channel::<u64>();
        boxes.push(tx);
        let rtx = rtx.clone();
        tokio::spawn(async move {
            if let Some(v) = rx.recv().await {
                let _ = rtx.send(v + 1);
            }
        });
    }
    let t1 = a.now();
    let after = rss_kb();
    let t2 = a.now();
    tokio::spawn(async move {
        for (i, b) in boxes.iter().enumerate() {
            let _ = b.send(i as u64);
        }
        std::mem::forget(boxes);
    });
    let mut sum = 0u64;
    for _ in 0..n {
        sum += rrx.recv().await.unwrap();
    }
    let t3 = a.now();
    check(sum == n * (n - 1) / 2 + n, "actor_spawn");
    let f = n as f64;
    a.report(n, (t1 - t0 + t3 - t2) as f64 / f,
        &format!(",\"spawn_ns\":{:.1},\"message_ns\":{:.1},\"bytes_per_actor\":{}{}",
            (t1 - t0) as f64 / f, (t3 - t2) as f64 / f, (after - before) * 1024 / n as i64, result(sum)));
}

async fn actor_fanin(a: Args) {
    let (n, senders) = (a.n("n", 4_000_000), a.n("senders", 8));
    let per = n / senders;
    let (tx, mut rx) = mpsc::unbounded_channel::<u64>();
    let t0 = a.now();
    let h = tokio::spawn(async move {
        let mut s = 0;
        for _ in 0..per * senders {
            s += rx.recv().await.unwrap();
        }
        s
    });
    for _ in 0..senders {
        let tx = tx.clone();
        tokio::spawn(async move {
            for k in 0..per {
                let _ = tx.send(1);
                // an unbounded send never suspends: give way now and then
                if k % 1024 == 1023 {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    check(h.await.unwrap() == per * senders, "fanin");
    a.report(n, (a.now() - t0) as f64 / n as f64, "");
}

// W11: Tokio's LIFO slot cannot be stolen, so a second, dummy wake follows at once
// and pushes the measured task from the slot into the stealable queue.
async fn wake(a: Args) {
    let (n, gap) = (a.n("n", 2000) as usize, a.n("gap_us", 200) as i64 * 1000);
    let stamp = Arc::new(AtomicI64::new(0));
    let (tx, mut rx) = mpsc::channel::<()>(1);
    let (dtx, mut drx) = mpsc::channel::<()>(1);
    let (s2, a2) = (stamp.clone(), a.clone());
    tokio::spawn(async move {
        while rx.recv().await.is_some() {
            s2.store(a2.now(), SeqCst);
        }
    });
    tokio::spawn(async move { while drx.recv().await.is_some() {} });
    tokio::time::sleep(Duration::from_millis(10)).await;
    let mut lat = vec![0u32; n];
    for l in lat.iter_mut() {
        tokio::task::yield_now().await; // lets the dummy run here
        let end = a.now() + gap;
        while a.now() < end {}
        stamp.store(0, SeqCst);
        let t = a.now();
        let _ = tx.try_send(());
        let _ = dtx.try_send(());
        let mut s = 0;
        while s == 0 {
            s = stamp.load(SeqCst);
        }
        *l = sat(s - t);
    }
    let p = percentiles(&mut lat);
    a.report(n as u64, lat[n / 2] as f64, &p);
}

fn main() {
    let mut it = std::env::args().skip(1);
    let workload = it.next().unwrap_or_else(|| {
        eprintln!("usage: tokio <workload> [key=value ...]");
        std::process::exit(2)
    });
    let kv = it.filter_map(|x| x.split_once('=').map(|(k, v)| (k.to_string(), v.to_string()))).collect();
    let a = Args { workload: workload.clone(), kv, t0: Instant::now() };
    let rt = if a.s("flavor", "multi") == "current" {
        if a.n("workers", 1) != 1 {
            std::process::exit(3);
        }
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    } else {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(a.n("workers", 1) as usize)
            .enable_time()
            .build()
            .unwrap()
    };
    let go = async move {
        let w = workload.as_str();
        match w {
            "spawn_join" => spawn_join(a).await,
            "yield" => yields(a).await,
            "pingpong" => pingpong(a).await,
            "chan" => channel(a).await,
            "mem" => mem(a).await,
            "skynet" => skynet(a).await,
            "fib" => fib(a).await,
            "timer_cancel" => timer_cancel(a).await,
            "timer_sleep" => timer_sleep(a).await,
            "mutex" => mutex(a).await,
            "actor_pingpong" => actor_pingpong(a).await,
            "actor_ring" => actor_ring(a).await,
            "actor_spawn" => actor_spawn(a).await,
            "actor_fanin" => actor_fanin(a).await,
            "wake" => wake(a).await,
            _ => {
                eprintln!("tokio: no workload {}", w);
                std::process::exit(3);
            }
        }
    };
    rt.block_on(async move { tokio::spawn(go).await.unwrap() });
    std::process::exit(0); // skip tearing down what is still asleep
}
