// SPDX-License-Identifier: MIT

// The servers of the yardstick in Go: a goroutine per connection, as Go programs are written.
//
//	serve_go PORT WORKERS echo|http
package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
)

const bufferBytes = 4096
const headMax = 2048
const answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"

var get = []byte("GET ")
var emptyLine = []byte("\r\n\r\n")

func echo(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, bufferBytes)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if _, err = conn.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// How many whole requests there are, and where the last one ends; -1 if there is something else.
func requests(b []byte) (int, int) {
	found, used := 0, 0
	for used < len(b) {
		left := b[used:]
		if !bytes.HasPrefix(left, get[:min(len(left), len(get))]) {
			return -1, used
		}
		end := bytes.Index(left, emptyLine)
		if end < 0 {
			break
		}
		used += end + len(emptyLine)
		found++
	}
	return found, used
}

func http(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, headMax)
	one := []byte(answer)
	have := 0
	for have < len(buffer) {
		n, err := conn.Read(buffer[have:])
		if err != nil {
			return
		}
		have += n
		found, used := requests(buffer[:have])
		if found < 0 {
			return
		}
		out := one
		if found != 1 {
			out = bytes.Repeat(one, found)
		}
		if _, err = conn.Write(out); err != nil {
			return
		}
		have = copy(buffer, buffer[used:have])
	}
}

func main() {
	serve := map[string]func(net.Conn){"echo": echo, "http": http}
	if len(os.Args) < 4 || serve[os.Args[3]] == nil {
		fmt.Fprintln(os.Stderr, "usage: serve_go PORT WORKERS echo|http")
		os.Exit(2)
	}
	workers, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	runtime.GOMAXPROCS(workers)
	listener, err := net.Listen("tcp4", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		if conn, err := listener.Accept(); err == nil {
			go serve[os.Args[3]](conn)
		}
	}
}
