// SPDX-License-Identifier: MIT

// What channels do in Go, as lines. tests/unit/sync/test_go_lines.c prints the same lines with
// Sinew's channels, and behaviour.expected is what both must say.
//
// Where a Go program panics and Sinew gives -EPIPE, both say "closed".
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
)

var out = bufio.NewWriter(os.Stdout)

func say(format string, args ...any) {
	fmt.Fprintf(out, format+"\n", args...)
}

// ---- one operation, without waiting -------------------------------------------------------

const blocked = "would wait"

func trySend(ch chan int, v int) (result string) {
	defer func() {
		if recover() != nil {
			result = "closed"
		}
	}()
	select {
	case ch <- v:
		return "sent"
	default:
		return blocked
	}
}

func tryRecv(ch chan int) string {
	select {
	case v, ok := <-ch:
		if !ok {
			return "closed"
		}
		return fmt.Sprintf("got %d", v)
	default:
		return blocked
	}
}

// until repeats what would wait until its counterpart has come.
func until(try func() string) string {
	for {
		if result := try(); result != blocked {
			return result
		}
		runtime.Gosched()
	}
}

func filled(capacity int, values int, closed bool) chan int {
	ch := make(chan int, capacity)
	for v := 1; v <= values; v++ {
		ch <- v
	}
	if closed {
		close(ch)
	}
	return ch
}

func sayStates() {
	states := []struct {
		name             string
		capacity, values int
		closed           bool
	}{
		{"unbuffered", 0, 0, false},
		{"empty", 2, 0, false},
		{"half full", 2, 1, false},
		{"full", 2, 2, false},
		{"unbuffered, closed", 0, 0, true},
		{"empty, closed", 2, 0, true},
		{"half full, closed", 2, 1, true},
		{"full, closed", 2, 2, true},
	}
	say("nil: send %s, receive %s", trySend(nil, 9), tryRecv(nil))
	for _, s := range states {
		ch := filled(s.capacity, s.values, s.closed)
		say("%s: length %d of %d", s.name, len(ch), cap(ch))
		say("%s: send %s", s.name, trySend(filled(s.capacity, s.values, s.closed), 9))
		for i := 1; i <= 3; i++ {
			say("%s: receive %d %s", s.name, i, tryRecv(ch))
		}
	}
}

func sayWaiting() {
	for capacity := 0; capacity <= 1; capacity++ {
		ch, result := make(chan int, capacity), make(chan string)
		go func() { v, ok := <-ch; result <- fmt.Sprintf("%d %t", v, ok) }()
		say("a receiver waits at %d: send %s, it gets %s", capacity,
			until(func() string { return trySend(ch, 5) }), <-result)
		for i := 0; i < capacity; i++ {
			ch <- i
		}
		go func() { ch <- 6; result <- "done" }()
		for i := 0; i < capacity; i++ {
			say("it had %s", until(func() string { return tryRecv(ch) }))
		}
		say("a sender waits at %d: receive %s, it is %s", capacity,
			until(func() string { return tryRecv(ch) }), <-result)
		go func() { v, ok := <-ch; result <- fmt.Sprintf("%d %t", v, ok) }()
		close(ch)
		say("a receiver waits at %d: after the close it gets %s", capacity, <-result)
		full := filled(capacity, capacity, false)
		go func() {
			defer func() { recover(); result <- "closed" }()
			full <- 7
			result <- "sent"
		}()
		runtime.Gosched()
		close(full)
		say("a sender waits at %d: after the close it is %s", capacity, <-result)
	}
}

// A select whose cases are all of one kind; the others' channels are nil.
func saySelects() {
	var none chan int
	full, empty, over := filled(1, 1, false), filled(1, 0, false), filled(1, 1, true)
	pick := func(a, b, c chan int) string {
		select {
		case v, ok := <-a:
			return fmt.Sprintf("first %d %t", v, ok)
		case v, ok := <-b:
			return fmt.Sprintf("second %d %t", v, ok)
		case c <- 8:
			return "third"
		default:
			return "default"
		}
	}
	say("select nil nil nil: %s", pick(none, none, none))
	say("select empty nil full: %s", pick(empty, none, full))
	say("select full nil nil: %s", pick(full, none, none))
	say("select empty closed nil: %s", pick(empty, over, none))
	say("select empty closed nil: %s", pick(empty, over, none))
	say("select nil nil empty: %s", pick(none, none, empty))
	say("select nil empty nil: %s", pick(none, empty, none))
}

// ---- streams ------------------------------------------------------------------------------

func saySieve(count int) {
	from := make(chan int)
	go func(to chan<- int) {
		for i := 2; ; i++ {
			to <- i
		}
	}(from)
	for i := 1; i <= count; i++ {
		prime := <-from
		say("prime %d: %d", i, prime)
		to := make(chan int)
		go func(from <-chan int, to chan<- int) {
			for n := range from {
				if n%prime != 0 {
					to <- n
				}
			}
		}(from, to)
		from = to
	}
}

func sayChain(tasks int, step func(int64) int64, name string) {
	first := make(chan int64)
	from := first
	for i := 0; i < tasks; i++ {
		to := make(chan int64)
		go func(from <-chan int64, to chan<- int64) { to <- step(<-from) }(from, to)
		from = to
	}
	first <- 1
	say("%d %s: %d", tasks, name, <-from)
}

// Everybody puts a token into a channel of elements without size.
func sayTokens() {
	for _, capacity := range []int{0, 3} {
		tokens := make(chan struct{}, capacity)
		var group sync.WaitGroup
		for i := 0; i < 10; i++ {
			group.Add(1)
			go func() { tokens <- struct{}{}; group.Done() }()
		}
		go func() { group.Wait(); close(tokens) }()
		count := 0
		for range tokens {
			count++
		}
		say("tokens through %d: %d", capacity, count)
	}
}

func main() {
	defer out.Flush()
	sayStates()
	sayWaiting()
	saySelects()
	saySieve(40)
	sayChain(1000, func(n int64) int64 { return n + 1 }, "that add one")
	sayChain(40, func(n int64) int64 { return 2 * n }, "that double")
	sayTokens()
	saySeries(10)
}
