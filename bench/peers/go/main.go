// SPDX-License-Identifier: MIT

// The yardstick in Go: goroutines, channels, timers.
//
//	go <workload> [key=value ...]
//
// WORKLOADS.md says what each workload is. One line of JSON per run.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var params = map[string]string{}

func arg(k string, def int) int {
	if v, ok := params[k]; ok {
		n, err := strconv.Atoi(v)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bad", k)
			os.Exit(2)
		}
		return n
	}
	return def
}

func sarg(k, def string) string {
	if v, ok := params[k]; ok {
		return v
	}
	return def
}

var workload string
var workers int
var start time.Time

func now() int64 { return int64(time.Since(start)) }

func rssKb() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize()) / 1024
}

// VmHWM, not ru_maxrss: the latter survives exec and shows the parent's
func peakKb() int64 {
	b, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(b), "\n") {
		if f := strings.Fields(l); len(f) > 1 && f[0] == "VmHWM:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

func report(n int, ns float64, extra string) {
	fmt.Printf("{\"peer\":\"go\",\"workload\":\"%s\",\"workers\":%d,\"n\":%d,\"ns_per_op\":%.2f,\"ops_per_s\":%.0f,\"rss_kb\":%d,\"version\":\"%s\"%s}\n",
		workload, workers, n, ns, 1e9/ns, peakKb(), runtime.Version(), extra)
}

func result(v uint64) string { return fmt.Sprintf(",\"result\":%d", v) }

func check(ok bool, what string) {
	if !ok {
		fmt.Fprintln(os.Stderr, "go: wrong result in", what)
		os.Exit(4)
	}
}

// W1
func spawnJoin() {
	n, batch := arg("n", 1000000), arg("batch", 1000)
	t0 := now()
	for i := 0; i < n; i += batch {
		var wg sync.WaitGroup
		wg.Add(batch)
		for j := 0; j < batch; j++ {
			go func() { wg.Done() }()
		}
		wg.Wait()
	}
	report(n, float64(now()-t0)/float64(n), "")
}

// W2
func yield() {
	n, tasks := arg("n", 4000000), arg("tasks", 2)
	per := n / tasks
	var wg sync.WaitGroup
	wg.Add(tasks)
	t0 := now()
	for i := 0; i < tasks; i++ {
		go func() {
			for k := 0; k < per; k++ {
				runtime.Gosched()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	report(n, float64(now()-t0)/float64(per*tasks), "")
}

// W3
func pingpong() {
	n := arg("n", 1000000)
	a, b := make(chan uint64), make(chan uint64)
	done := make(chan struct{})
	t0 := now()
	go func() {
		for i := 0; i < n; i++ {
			b <- <-a + 1
		}
		done <- struct{}{}
	}()
	go func() {
		var v uint64
		for i := 0; i < n; i++ {
			a <- v
			v = <-b
		}
		check(v == uint64(n), "pingpong")
		done <- struct{}{}
	}()
	<-done
	<-done
	report(n, float64(now()-t0)/float64(n), result(uint64(n)))
}

// W4
func channel() {
	n, p, c, capn := arg("n", 4000000), arg("prod", 1), arg("cons", 1), arg("cap", 64)
	ch := make(chan uint64, capn)
	per := n / p
	var sum uint64
	var pw, cw sync.WaitGroup
	pw.Add(p)
	cw.Add(c)
	t0 := now()
	for i := 0; i < p; i++ {
		go func(base uint64) {
			for k := 0; k < per; k++ {
				ch <- base + uint64(k)
			}
			pw.Done()
		}(uint64(i * per))
	}
	for i := 0; i < c; i++ {
		go func() {
			var s uint64
			for v := range ch {
				s += v
			}
			atomic.AddUint64(&sum, s)
			cw.Done()
		}()
	}
	pw.Wait()
	close(ch)
	cw.Wait()
	t1 := now()
	m := uint64(per * p)
	check(sum == m*(m-1)/2, "chan")
	report(n, float64(t1-t0)/float64(n), result(sum))
}

// W5
func mem() {
	n, kind := arg("n", 100000), sarg("kind", "sleep")
	var blocked int64
	ch := make(chan uint64)
	runtime.GC()
	before := rssKb()
	t0 := now()
	for i := 0; i < n; i++ {
		if kind == "sleep" {
			go func() {
				atomic.AddInt64(&blocked, 1)
				time.Sleep(120 * time.Second)
			}()
		} else {
			go func() {
				atomic.AddInt64(&blocked, 1)
				<-ch
			}()
		}
	}
	for atomic.LoadInt64(&blocked) < int64(n) {
		time.Sleep(time.Millisecond)
	}
	t1 := now()
	time.Sleep(300 * time.Millisecond)
	after := rssKb()
	report(n, float64(t1-t0)/float64(n), fmt.Sprintf(",\"kind\":\"%s\",\"bytes_per_task\":%d", kind, (after-before)*1024/int64(n)))
	os.Exit(0)
}

// W6
func sky(out chan uint64, num, size uint64) {
	if size == 1 {
		out <- num
		return
	}
	in := make(chan uint64)
	sub := size / 10
	for i := uint64(0); i < 10; i++ {
		go sky(in, num+i*sub, sub)
	}
	var s uint64
	for i := 0; i < 10; i++ {
		s += <-in
	}
	out <- s
}

func skynet() {
	n := uint64(arg("n", 1000000))
	out := make(chan uint64)
	t0 := now()
	go sky(out, 0, n)
	s := <-out
	t1 := now()
	check(s == n*(n-1)/2, "skynet")
	report(int(n), float64(t1-t0)/float64(n), fmt.Sprintf(",\"ms\":%.1f", float64(t1-t0)/1e6)+result(s))
}

// W7
func fibTask(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	ch := make(chan uint64, 1)
	go func() { ch <- fibTask(n - 1) }()
	b := fibTask(n - 2)
	return <-ch + b
}

func fibPlain(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	return fibPlain(n-1) + fibPlain(n-2)
}

func fib() {
	n := arg("n", 30)
	done := make(chan uint64)
	t0 := now()
	go func() { done <- fibTask(n) }()
	r := <-done
	t1 := now()
	check(r == fibPlain(n), "fib")
	spawns := fibPlain(n+1) - 1
	report(int(spawns), float64(t1-t0)/float64(spawns), fmt.Sprintf(",\"ms\":%.1f", float64(t1-t0)/1e6)+result(r))
}

// W8
func timerCancel() {
	n := arg("n", 1000000)
	rng := rand.New(rand.NewSource(1))
	d := make([]time.Duration, n)
	for i := range d {
		d[i] = time.Duration(1+rng.Intn(10000)) * time.Millisecond
	}
	ts := make([]*time.Timer, n)
	var fired int64
	cb := func() { atomic.AddInt64(&fired, 1) }
	t0 := now()
	for i := range ts {
		ts[i] = time.AfterFunc(d[i], cb)
	}
	t1 := now()
	stopped := 0
	for i := range ts {
		if ts[i].Stop() {
			stopped++
		}
	}
	t2 := now()
	report(n, float64(t2-t0)/float64(n), fmt.Sprintf(",\"schedule_ns\":%.1f,\"cancel_ns\":%.1f,\"fired\":%d",
		float64(t1-t0)/float64(n), float64(t2-t1)/float64(n), n-stopped))
}

func percentiles(v []uint32) string {
	sort.Slice(v, func(i, j int) bool { return v[i] < v[j] })
	n := len(v)
	return fmt.Sprintf(",\"p50_ns\":%d,\"p99_ns\":%d,\"p999_ns\":%d", v[n/2], v[n*99/100], v[n*999/1000])
}

func sat(x int64) uint32 {
	if x < 0 {
		return 0
	}
	if x > 0xffffffff {
		return 0xffffffff
	}
	return uint32(x)
}

func timerSleep() {
	tasks, rounds, ms, warm := arg("tasks", 100000), arg("rounds", 100), arg("ms", 1), arg("warm_ms", 2000)
	late := make([]uint32, tasks*rounds)
	d := time.Duration(ms) * time.Millisecond
	var wg sync.WaitGroup
	wg.Add(tasks)
	t0 := now() + int64(warm)*1000000
	for i := 0; i < tasks; i++ {
		go func(l []uint32) {
			time.Sleep(time.Duration(t0 - now()))
			for r := range l {
				a := now()
				time.Sleep(d)
				l[r] = sat(now() - a - int64(d))
			}
			wg.Done()
		}(late[i*rounds : (i+1)*rounds])
	}
	wg.Wait()
	t1 := now()
	n := tasks * rounds
	report(n, float64(t1-t0)/float64(n), fmt.Sprintf(",\"tasks\":%d,\"rounds\":%d%s", tasks, rounds, percentiles(late)))
}

// W9
func mutex() {
	tasks, iters := arg("tasks", 1000), arg("iters", 1000)
	var mu sync.Mutex
	var counter int
	var wg sync.WaitGroup
	wg.Add(tasks)
	t0 := now()
	for i := 0; i < tasks; i++ {
		go func() {
			for k := 0; k < iters; k++ {
				mu.Lock()
				counter++
				mu.Unlock()
			}
			wg.Done()
		}()
	}
	wg.Wait()
	t1 := now()
	n := tasks * iters
	check(counter == n, "mutex")
	report(n, float64(t1-t0)/float64(n), result(uint64(counter)))
}

// W10: an actor is a goroutine with a buffered channel as its mailbox
const mailbox = 64

func actorPingpong() {
	n := arg("n", 1000000)
	a, b := make(chan uint64, mailbox), make(chan uint64, mailbox)
	done := make(chan struct{})
	t0 := now()
	go func() {
		for i := 0; i < n/2; i++ {
			b <- <-a + 1
		}
	}()
	go func() {
		var v uint64
		for i := 0; i < n/2; i++ {
			a <- v
			v = <-b
		}
		close(done)
	}()
	<-done
	report(n, float64(now()-t0)/float64(n), "")
}

func actorRing() {
	n, actors := arg("n", 1000000), arg("actors", 503)
	boxes := make([]chan int, actors)
	for i := range boxes {
		boxes[i] = make(chan int, mailbox)
	}
	done := make(chan struct{})
	for i := range boxes {
		go func(in, out chan int) {
			for {
				k := <-in
				if k == 0 {
					close(done)
					return
				}
				out <- k - 1
			}
		}(boxes[i], boxes[(i+1)%actors])
	}
	t0 := now()
	boxes[0] <- n
	<-done
	report(n, float64(now()-t0)/float64(n), "")
}

func actorSpawn() {
	n := arg("n", 1000000)
	boxes := make([]chan uint64, n)
	reply := make(chan uint64, mailbox)
	runtime.GC()
	before := rssKb()
	t0 := now()
	for i := range boxes {
		c := make(chan uint64, 1)
		boxes[i] = c
		go func() { reply <- <-c + 1 }()
	}
	t1 := now()
	after := rssKb()
	t2 := now()
	go func() {
		for i := range boxes {
			boxes[i] <- uint64(i)
		}
	}()
	var sum uint64
	for range boxes {
		sum += <-reply
	}
	t3 := now()
	m := uint64(n)
	check(sum == m*(m-1)/2+m, "actor_spawn")
	report(n, float64(t1-t0+t3-t2)/float64(n), fmt.Sprintf(",\"spawn_ns\":%.1f,\"message_ns\":%.1f,\"bytes_per_actor\":%d",
		float64(t1-t0)/float64(n), float64(t3-t2)/float64(n), (after-before)*1024/int64(n))+result(sum))
}

func actorFanin() {
	n, senders := arg("n", 4000000), arg("senders", 8)
	per := n / senders
	box := make(chan uint64, mailbox)
	done := make(chan struct{})
	t0 := now()
	go func() {
		var s uint64
		for i := 0; i < per*senders; i++ {
			s += <-box
		}
		check(s == uint64(per*senders), "fanin")
		close(done)
	}()
	for i := 0; i < senders; i++ {
		go func() {
			for k := 0; k < per; k++ {
				box <- 1
			}
		}()
	}
	<-done
	report(n, float64(now()-t0)/float64(n), "")
}

// W11
func wake() {
	n, gap := arg("n", 2000), int64(arg("gap_us", 200))*1000
	lat := make([]uint32, n)
	ch := make(chan struct{}, 1)
	var stamp int64
	go func() {
		for range ch {
			atomic.StoreInt64(&stamp, now())
		}
	}()
	time.Sleep(10 * time.Millisecond)
	for i := 0; i < n; i++ {
		for end := now() + gap; now() < end; {
		}
		atomic.StoreInt64(&stamp, 0)
		a := now()
		ch <- struct{}{}
		var s int64
		for s == 0 {
			s = atomic.LoadInt64(&stamp)
		}
		lat[i] = sat(s - a)
	}
	p := percentiles(lat)
	report(n, float64(lat[n/2]), p)
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go <workload> [key=value ...]")
		os.Exit(2)
	}
	workload = os.Args[1]
	for _, a := range os.Args[2:] {
		if i := strings.IndexByte(a, '='); i > 0 {
			params[a[:i]] = a[i+1:]
		}
	}
	workers = arg("workers", 1)
	runtime.GOMAXPROCS(workers)
	start = time.Now()
	table := map[string]func(){
		"spawn_join": spawnJoin, "yield": yield, "pingpong": pingpong, "chan": channel,
		"mem": mem, "skynet": skynet, "fib": fib, "timer_cancel": timerCancel,
		"timer_sleep": timerSleep, "mutex": mutex, "actor_pingpong": actorPingpong,
		"actor_ring": actorRing, "actor_spawn": actorSpawn, "actor_fanin": actorFanin,
		"wake": wake,
	}
	f, ok := table[workload]
	if !ok {
		fmt.Fprintln(os.Stderr, "go: no workload", workload)
		os.Exit(3)
	}
	f()
}
