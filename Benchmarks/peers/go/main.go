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

func run(client *http.Client, url string, requests, connections int) int64 {
	left, bytes := int64(requests), int64(0)
	var workers sync.WaitGroup
	for i := 0; i < connections; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for atomic.AddInt64(&left, -1) >= 0 {
				response, err := client.Get(url)
				if err != nil {
					fail(err)
				}
				if response.StatusCode != 200 {
					fail(response.Status)
				}
				inFlight.Do(func() {
					if len(os.Args) > 1 && os.Args[1] == "inflight" && requests > 1 {
						inFlightRSS = procKB("/proc/self/smaps_rollup", "Rss:")
					}
				})
				n, err := io.Copy(io.Discard, response.Body)
				if err != nil {
					fail(err)
				}
				response.Body.Close()
				atomic.AddInt64(&bytes, n)
			}
		}()
	}
	workers.Wait()
	return bytes
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
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConns: 0, MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections,
		DisableCompression: true, TLSClientConfig: config,
	}}
	if warm := os.Getenv("BENCH_WARM"); warm != "" && warm != "0" {
		warmURL := os.Getenv("BENCH_WARM_URL")
		if warmURL == "" {
			warmURL = url
		}
		run(client, warmURL, number(warm), connections)
		inFlight = sync.Once{}
	}
	shareCore()
	rss := procKB("/proc/self/smaps_rollup", "Rss:")
	before := take()
	bytes := run(client, url, requests, connections)
	after := take()
	now := inFlightRSS
	if now == 0 {
		now = procKB("/proc/self/smaps_rollup", "Rss:")
	}
	line, _ := json.Marshal(map[string]interface{}{
		"requests": requests, "bytes": bytes, "wall": after.wall.Sub(before.wall).Seconds(),
		"cpu": after.cpu - before.cpu, "switches": after.switches - before.switches,
		"allocations": after.allocations - before.allocations,
		"maxrss":      procKB("/proc/self/status", "VmHWM:"), "rss": now - rss,
	})
	fmt.Println(string(line))
}
