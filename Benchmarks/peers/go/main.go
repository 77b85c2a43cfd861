// SPDX-License-Identifier: Apache-2.0

// Go's net/http: a goroutine for each connection. Same command line and output as the others
// (Sources/BenchMeasure); its allocations are the runtime's own count, since it never asks malloc.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

func fail(why interface{}) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		fail(err)
	}
	return n
}

// A line of a /proc file in KB.
func procKB(path, key string) int64 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == key {
			return int64(number(fields[1]))
		}
	}
	return 0
}

type sample struct {
	wall        time.Time
	cpu         float64
	switches    int64
	allocations uint64
}

func take() sample {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return sample{time.Now(),
		float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, u.Nvcsw + u.Nivcsw, memory.Mallocs}
}

// See share_core in Sources/BenchMeasure.
func shareCore() {
	core := os.Getenv("BENCH_CORE")
	if core == "" {
		return
	}
	tasks, _ := os.ReadDir("/proc/self/task")
	mask := uint64(1) << number(core)
	for _, task := range tasks {
		syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY,
			uintptr(number(task.Name())), unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	}
}

var inFlight sync.Once
var inFlightRSS int64

type bench struct {
	client      *http.Client
	scenario    string
	connections int
	target      string // of a download
	length      int64  // of an upload
	piece       int
}

// The pieces of an upload.
type pieces struct {
	left  int64
	piece []byte
}

func (p *pieces) Read(into []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := copy(into, p.piece)
	if int64(n) > p.left {
		n = int(p.left)
	}
	p.left -= int64(n)
	return n, nil
}

func (b *bench) load(url string, upload bool) int64 {
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		fail(err)
	}
	if upload {
		request.Method = "PUT"
		request.Body = io.NopCloser(&pieces{b.length, make([]byte, b.piece)})
		request.ContentLength = b.length
	}
	response, err := b.client.Do(request)
	if err != nil {
		fail(err)
	}
	if response.StatusCode != 200 {
		fail(response.Status)
	}
	inFlight.Do(func() {
		if b.scenario == "inflight" && b.connections > 1 {
			inFlightRSS = procKB("/proc/self/smaps_rollup", "Rss:")
		}
	})
	into := io.Discard
	if b.scenario == "download" {
		file, err := os.Create(b.target)
		if err != nil {
			fail(err)
		}
		defer os.Remove(b.target)
		defer file.Close()
		into = file
	}
	n, err := io.Copy(into, response.Body)
	if err != nil {
		fail(err)
	}
	response.Body.Close()
	if upload {
		return b.length
	}
	return n
}

var latencies []time.Duration
var latencyLock sync.Mutex

func keep(latency time.Duration) {
	latencyLock.Lock()
	latencies = append(latencies, latency)
	latencyLock.Unlock()
}

// Microseconds that this share of the latencies does not exceed; -1 without any.
func percentile(share float64) float64 {
	if len(latencies) == 0 {
		return -1
	}
	return float64(latencies[int(share*float64(len(latencies)-1))].Nanoseconds()) / 1e3
}

// Waits until a request of `paced` is due. Returns the moment from which its latency counts: see BenchMeasure.h.
func begin(start time.Time, number int64, rate int) time.Time {
	due := start.Add(time.Duration(number) * time.Second / time.Duration(rate))
	left := time.Until(due)
	if left <= 0 {
		return due
	}
	time.Sleep(left)
	return time.Now()
}

func (b *bench) run(url string, requests, rate int) int64 {
	taken, bytes := int64(0), int64(0)
	start := time.Now()
	upload := b.scenario == "upload-memory"
	var workers sync.WaitGroup
	for i := 0; i < b.connections && i < requests; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for {
				number := atomic.AddInt64(&taken, 1) - 1
				if number >= int64(requests) {
					return
				}
				if rate > 0 {
					began := begin(start, number, rate)
					atomic.AddInt64(&bytes, b.load(url, upload))
					keep(time.Since(began))
				} else {
					atomic.AddInt64(&bytes, b.load(url, upload))
				}
			}
		}()
	}
	workers.Wait()
	return bytes
}

// Discards one large body; until it ends, small responses are loaded one after the other.
func (b *bench) runBeside(url, small string) int64 {
	var over atomic.Bool
	done := make(chan bool)
	go func() {
		for !over.Load() {
			began := time.Now()
			b.load(small, false)
			keep(time.Since(began))
		}
		close(done)
	}()
	bytes := b.load(url, false)
	over.Store(true)
	<-done
	return bytes
}

// The variable of the environment as a number.
func variable(name string, otherwise int) int {
	if text := os.Getenv(name); text != "" {
		return number(text)
	}
	return otherwise
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println(runtime.Version())
		return
	}
	if len(os.Args) < 5 {
		fail("usage: contender <scenario> <url> <connections> <requests> [cafile]")
	}
	scenario, url := os.Args[1], os.Args[2]
	connections, requests := number(os.Args[3]), number(os.Args[4])
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	config := &tls.Config{}
	if len(os.Args) > 5 {
		pem, err := os.ReadFile(os.Args[5])
		if err != nil {
			fail(err)
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(pem)
	}
	if scenario == "handshake-resumed" {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(64)
	}
	isHTTP2 := os.Getenv("BENCH_HTTP2") == "1"
	if scenario == "upload-file" || (isHTTP2 && len(os.Args) <= 5) {
		os.Exit(77)
	}
	places := variable("BENCH_PLACES", connections)
	if isHTTP2 {
		places = 0
	}
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConns: 0, MaxIdleConnsPerHost: connections, MaxConnsPerHost: places, ForceAttemptHTTP2: isHTTP2,
		DisableCompression: true, DisableKeepAlives: os.Getenv("BENCH_NEW") != "", TLSClientConfig: config, WriteBufferSize: 64 << 10,
	}}
	b := &bench{client: client, scenario: scenario, connections: connections, target: os.Getenv("BENCH_TARGET"),
		length: int64(variable("BENCH_LENGTH", 0)), piece: variable("BENCH_PIECE", 64<<10)}
	if warm := variable("BENCH_WARM", 0); warm > 0 {
		warmURL := os.Getenv("BENCH_WARM_URL")
		if warmURL == "" {
			warmURL = url
		}
		b.run(warmURL, warm, 0)
		inFlight = sync.Once{}
	}
	shareCore()
	rss := procKB("/proc/self/smaps_rollup", "Rss:")
	before := take()
	var bytes int64
	switch scenario {
	case "beside":
		bytes = b.runBeside(url, os.Getenv("BENCH_BESIDE_URL"))
	case "paced":
		bytes = b.run(url, requests, variable("BENCH_RATE", 10000))
	default:
		bytes = b.run(url, requests, 0)
	}
	after := take()
	sort.Slice(latencies, func(i, j int) bool { return latencies[i] < latencies[j] })
	now := inFlightRSS
	if now == 0 {
		now = procKB("/proc/self/smaps_rollup", "Rss:")
	}
	line, _ := json.Marshal(map[string]interface{}{
		"requests": requests, "bytes": bytes, "wall": after.wall.Sub(before.wall).Seconds(),
		"cpu": after.cpu - before.cpu, "switches": after.switches - before.switches,
		"allocations": after.allocations - before.allocations,
		"maxrss":      procKB("/proc/self/status", "VmHWM:"), "rss": now - rss,
		"p50": percentile(0.5), "p99": percentile(0.99),
	})
	fmt.Println(string(line))
}
