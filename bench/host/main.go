// Command host drives an agent through package sdk and prints one line of JSON
// on stdout, the figures:
//
//	go run ./bench/host -agent PATH -mode stream|hook|perm|mcp|idle -n N -sessions K
//
// The agent is any program that speaks Claude Code's dialect. The prompt of its one
// turn says what to do, "<mode> <n>", and by BENCH_MODE and BENCH_N. Without -agent it
// is the minimal one of bench/fastagent. README.md in bench says what the modes and the
// figures are.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"

	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/sdk"
)

func main() {
	fast.Play()
	log.SetFlags(0)
	agent := flag.String("agent", "", "agent program; empty: the minimal one")
	mode := flag.String("mode", measure.Stream, "stream, hook, perm, mcp or idle")
	n := flag.Int("n", 1000, "events or callbacks of each turn")
	sessions := flag.Int("sessions", 1, "sessions at once")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	heap := flag.String("memprofile", "", "write a heap profile to this file while all sessions are open")
	flag.Parse()
	if flag.NArg() > 0 || !measure.Known(*mode) || *n < 0 || *sessions < 1 {
		flag.Usage()
		os.Exit(2)
	}
	job := drive.Job{Backend: sdk.Claude(sdk.ClaudeConfig{Path: *agent}), Mode: *mode, N: *n, Sessions: *sessions, Held: measure.HeapProfile(*heap)}
	if *agent == "" {
		path, env, err := fast.Self()
		if err != nil {
			log.Fatal(err)
		}
		job.Backend, job.Env = sdk.Claude(sdk.ClaudeConfig{Path: path}), env
	}
	stop, err := measure.CPUProfile(*profile)
	if err != nil {
		log.Fatal(err)
	}
	line, err := drive.Run(context.Background(), job)
	err = errors.Join(err, stop())
	if err != nil {
		log.Fatal(err)
	}
	if err := measure.Print(line); err != nil {
		log.Fatal(err)
	}
}
