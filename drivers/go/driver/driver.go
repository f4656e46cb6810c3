// Package driver speaks the contract of docs/drivers.md, so that a driver only calls its library.
package driver

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Config is the content of the frame Configure.
type Config struct {
	Topology                    string
	Addresses                   []string
	Protocol, Database          int
	UsernameFile, PasswordFile  string
	Connections, Callers        int
	Sharing                     string
	Retries                     int
	ConnectTimeoutMilliseconds  int64
	ResponseTimeoutMilliseconds int64
	Operations                  []struct {
		Name string
		// Key is the index of the argument with the first key, if there is one.
		Key *int
	}
}

// ConnectTimeout limits making a connection.
func (c *Config) ConnectTimeout() time.Duration {
	return time.Duration(c.ConnectTimeoutMilliseconds) * time.Millisecond
}

// ResponseTimeout limits a call.
func (c *Config) ResponseTimeout() time.Duration {
	return time.Duration(c.ResponseTimeoutMilliseconds) * time.Millisecond
}

// Secret is the content of a file, or nothing without one.
func Secret(path string) string {
	content, err := os.ReadFile(path)
	if path != "" && err != nil {
		fail(err)
	}
	return string(content)
}

// Client calls a library. Call returns nil, strings, int64s, and slices and maps of them; a server's error as ErrorReply.
type Client interface {
	Call(args [][]byte, key *int) (any, error)
	Close()
}

// ErrorReply is an error that a server replied with.
type ErrorReply string

func (e ErrorReply) Error() string { return string(e) }

// The kinds of frames, and the outcomes of calls.
const (
	hello, configure, ready, failed, call, done, drain, bye = 1, 2, 3, 4, 5, 6, 7, 8
	success, errorReply, timeout, disconnected, other       = 0, 1, 2, 3, 4
	checksum, null                                          = 1, 2
)

type request struct {
	id        uint64
	operation uint16
	flags     byte
	args      [][]byte
}

type noop struct{}

func (noop) Call([][]byte, *int) (any, error) { return nil, nil }
func (noop) Close()                           {}

// Run serves the shard until it closes the socket. open makes all connections and returns their number.
func Run(library, module string, open func(*Config) (Client, int, error)) {
	nothing := flag.Bool("noop", false, "complete every call at once, without the library")
	flag.Parse()
	if *nothing {
		open = func(*Config) (Client, int, error) { return noop{}, 0, nil }
	}
	socket, err := dial(os.Getenv("REDISBENCH_DRIVER_SOCKET"))
	if err != nil {
		fail(err)
	}
	introduction, _ := json.Marshal(map[string]any{
		"protocol": 1, "language": "Go", "library": library, "version": version(module),
	})
	send(socket, hello, introduction)
	in := bufio.NewReaderSize(socket, 1<<16)
	var config Config
	var client Client
	var calls chan request
	var finished chan struct{}
	for {
		kind, body, err := receive(in)
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fail(err)
		}
		switch kind {
		case configure:
			config = Config{}
			if err = json.Unmarshal(body, &config); err != nil {
				fail(err)
			}
			var connections int
			if client, connections, err = open(&config); err != nil {
				send(socket, failed, []byte(err.Error()))
				continue
			}
			calls, finished = begin(socket, client, &config)
			send(socket, ready, fmt.Appendf(nil, `{"connections":%d}`, connections))
		case call:
			for len(body) > 0 {
				var next request
				next, body = parse(body)
				calls <- next
			}
		case drain:
			close(calls)
			<-finished
			client.Close()
			send(socket, bye, nil)
		}
	}
}

// begin starts the callers, and what writes their outcomes.
func begin(socket net.Conn, client Client, config *Config) (chan request, chan struct{}) {
	calls, outcomes := make(chan request, config.Callers), make(chan []byte, config.Callers)
	callers, finished := make(chan struct{}), make(chan struct{})
	for range config.Callers {
		go func() {
			for request := range calls {
				called := monotonic()
				reply, err := client.Call(request.args, config.Operations[request.operation].Key)
				outcomes <- outcome(request, called, monotonic(), reply, err)
			}
			callers <- struct{}{}
		}()
	}
	go func() {
		for range config.Callers {
			<-callers
		}
		close(outcomes)
	}()
	go func() {
		for first := range outcomes {
			body := first
			for range len(outcomes) {
				body = append(body, <-outcomes...)
			}
			send(socket, done, body)
		}
		close(finished)
	}()
	return calls, finished
}

func outcome(request request, called, completed uint64, reply any, err error) []byte {
	result, word, flags, sum := success, "", byte(0), uint32(0)
	var answer ErrorReply
	var network net.Error
	switch {
	case err == nil && reply == nil:
		flags |= null
	case err == nil:
	case errors.As(err, &answer):
		word, _, _ = strings.Cut(string(answer), " ")
		result = errorReply
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		result = timeout
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		result = disconnected
	default:
		result, word = other, "Library"
	}
	if request.flags&checksum != 0 {
		flags |= checksum
		sum = touch(reply)
	}
	word = word[:min(len(word), 32)]
	out := make([]byte, 0, 31+len(word))
	out = binary.LittleEndian.AppendUint64(out, request.id)
	out = binary.LittleEndian.AppendUint64(out, called)
	out = binary.LittleEndian.AppendUint64(out, completed)
	out = binary.LittleEndian.AppendUint32(out, sum)
	return append(append(out, flags, byte(result), byte(len(word))), word...)
}

// touch sums the checksums of all strings and integers.
func touch(reply any) (sum uint32) {
	switch reply := reply.(type) {
	case string:
		return crc32.ChecksumIEEE([]byte(reply))
	case int64:
		return crc32.ChecksumIEEE(strconv.AppendInt(nil, reply, 10))
	case []any:
		for _, element := range reply {
			sum += touch(element)
		}
	case map[string]any:
		for key, value := range reply {
			sum += touch(key) + touch(value)
		}
	case map[any]any:
		for key, value := range reply {
			sum += touch(key) + touch(value)
		}
	}
	return sum
}

func parse(body []byte) (request, []byte) {
	little := binary.LittleEndian
	next := request{id: little.Uint64(body), operation: little.Uint16(body[8:]), flags: body[10]}
	next.args = make([][]byte, little.Uint32(body[11:]))
	body = body[15:]
	for index := range next.args {
		end := 4 + little.Uint32(body)
		next.args[index], body = body[4:end], body[end:]
	}
	return next, body
}

func receive(in io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.LittleEndian.Uint32(head[:])-1)
	_, err := io.ReadFull(in, body)
	return head[4], body, err
}

func send(socket net.Conn, kind byte, body []byte) {
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 5+len(body)), uint32(1+len(body)))
	if _, err := socket.Write(append(append(frame, kind), body...)); err != nil {
		fail(err)
	}
}

// dial waits for the shard, which may start later.
func dial(path string) (socket net.Conn, err error) {
	for range 600 {
		if socket, err = net.Dial("unix", path); err == nil {
			return socket, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, err
}

// Go hides the clock that the shard reads, so the two are compared once, at the closest of some readings.
var anchor, anchored = func() (time.Time, uint64) {
	var best time.Time
	var at uint64
	gap := time.Hour
	for range 100 {
		var now unix.Timespec
		before := time.Now()
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
		if took := time.Since(before); took < gap {
			best, at, gap = before.Add(took/2), uint64(now.Nano()), took
		}
	}
	return best, at
}()

func monotonic() uint64 { return anchored + uint64(time.Since(anchor)) }

func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return strings.TrimPrefix(dependency.Version, "v")
			}
		}
	}
	return "unknown"
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "driver:", err)
	os.Exit(1)
}
