// Command fleet measures jobs and crowds, and prints one line of JSON:
//
//	go run ./bench/fleet -tasks 2000 -j 64 -rounds 3   # tasks per second of a job, against the bare loop
//	go run ./bench/fleet -sessions 10000 -for 60s      # sessions that have a turn each second
//
// A task is one process of bench/fastagent with 20 ms of work: spawn, initialize, one turn,
// end. Each round runs the tasks three times: in the bare loop, in a job that keeps nothing,
// and in a job with journal, transcripts, results and events. -least and -most make the
// program fail: the first if the median of the job's tasks per second, against the bare
// loop, is less; the second if journal and events cost a greater part.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/bench/internal/throughput"
)

func main() {
	fast.Play()
	log.SetFlags(0)
	many, spell := 2000, time.Minute
	if os.Getenv("TROUPE_SMOKE") != "" {
		many, spell = 40, 2*time.Second
	}
	tasks := flag.Int("tasks", many, "tasks of each run")
	atOnce := flag.Int("j", 64, "tasks at the same time")
	rounds := flag.Int("rounds", 3, "rounds")
	work := flag.Duration("work", 20*time.Millisecond, "work of a task")
	least := flag.Float64("least", 0, "fail if the job has a smaller part of the bare loop's tasks per second; 0: no limit")
	most := flag.Float64("most", 0, "fail if journal and events cost a greater part of the time; 0: no limit")
	sessions := flag.Int("sessions", 0, "measure a crowd of so many sessions in memory instead")
	period := flag.Duration("for", spell, "how long the crowd has turns")
	flag.Parse()
	if flag.NArg() > 0 || *tasks < 1 || *atOnce < 1 || *rounds < 1 || *sessions < 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx := context.Background()
	var figures any
	var err error
	if *sessions > 0 {
		figures, err = throughput.Crowd(ctx, *sessions, *period)
	} else {
		var f throughput.Figures
		f, err = throughput.Jobs(ctx, throughput.Job{Tasks: *tasks, AtOnce: *atOnce, Rounds: *rounds, Work: *work})
		if err == nil {
			err = f.Check(*least, *most)
		}
		figures = f
	}
	if err = errors.Join(err, measure.Print(figures)); err != nil {
		log.Fatal(err)
	}
}
