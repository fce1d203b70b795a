// Command bare runs the least that a Go program can do to serve an agent, and
// prints the same line of figures as bench/host:
//
//	go run ./bench/bare -agent PATH -mode stream -n 200000
//
// Without -agent it measures the minimal agent of bench/fastagent.
package main

import (
	"flag"
	"log"
	"os"
	"strconv"

	"github.com/agent-troupe/troupe/bench/internal/bare"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
)

func main() {
	fast.Play()
	log.SetFlags(0)
	agent := flag.String("agent", "", "agent program; empty: the minimal one")
	mode := flag.String("mode", measure.Stream, "stream, hook, perm or mcp")
	n := flag.Int("n", 1000, "events or callbacks")
	flag.Parse()
	if flag.NArg() > 0 || !measure.Known(*mode) || *mode == measure.Idle {
		flag.Usage()
		os.Exit(2)
	}
	env := []string{measure.ModeEnv + "=" + *mode, measure.CountEnv + "=" + strconv.Itoa(*n)}
	if *agent == "" {
		path, more, err := fast.Self()
		if err != nil {
			log.Fatal(err)
		}
		*agent = path
		for k, v := range more {
			env = append(env, k+"="+v)
		}
	}
	line, err := bare.Run([]string{*agent}, env, *mode, *n)
	if err != nil {
		log.Fatal(err)
	}
	if err := measure.Print(line); err != nil {
		log.Fatal(err)
	}
}
