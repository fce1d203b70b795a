// Command benchpair compares what a message costs in two versions of this module. It
// builds the benchmarks of both once and runs them in turn, so that other work on the
// machine meets both:
//
//	go -C tools run ./benchpair -old COMMIT                # against the working tree
//	go -C tools run ./benchpair -old COMMIT -new COMMIT -rounds 31
//	go -C tools run ./benchpair -old COMMIT -scale 5 -most 1.03
//
// The figure is the processor time in user mode of one operation: all of the process,
// garbage collection and the agent in it included. A round gives one ratio, new by old,
// of each benchmark; the interval has the median of the ratios with a confidence of at
// least 95 % whatever their distribution (it goes from one order statistic to another).
// Allocations are of one operation, too. With -most the command fails if a whole
// interval is above it.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// benchmarks are the kinds of messages, with how many of them one run has: about a
// second each.
var benchmarks = []struct {
	name, run string
	n         int
}{
	{"stream", "^BenchmarkSession$/^stream$", 500_000},
	{"hook", "^BenchmarkSession$/^hook$", 50_000},
	{"perm", "^BenchmarkSession$/^perm$", 50_000},
	{"mcp", "^BenchmarkSession$/^mcp$", 40_000},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("benchpair: ")
	before := flag.String("old", "", "the commit to compare with")
	after := flag.String("new", "", "the commit that is compared; empty: the working tree")
	rounds := flag.Int("rounds", 15, "runs of each benchmark in each version")
	scale := flag.Float64("scale", 1, "factor for the number of messages in one run")
	most := flag.Float64("most", math.Inf(1), "fail if a ratio is above this")
	only := flag.String("only", "", "the one kind of messages to measure: stream, hook, perm or mcp")
	root := flag.String("root", "..", "the checkout")
	flag.Parse()
	known := *only == ""
	for _, b := range benchmarks {
		known = known || *only == b.name
	}
	if *before == "" || *rounds < 1 || *scale <= 0 || !known || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := compare(*root, *before, *after, *only, *rounds, *scale, *most); err != nil {
		log.Fatal(err)
	}
}

// side is one of the two versions.
type side struct{ program, dir string }

// cost is what one operation took.
type cost struct {
	micros, bytes, allocs float64
}

func compare(root, before, after, only string, rounds int, scale, most float64) (err error) {
	scratch, err := os.MkdirTemp("", "benchpair")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	var sides [2]side
	for i, commit := range []string{before, after} {
		if sides[i], err = build(root, scratch, commit, i); err != nil {
			return err
		}
	}
	fmt.Printf("medians of %d rounds; µs of user CPU time for each message\n\n", rounds)
	fmt.Printf("%-7s %8s %8s   %-25s %14s %16s\n", "", "old", "new", "new/old (interval)", "bytes", "allocations")
	above := false
	for _, b := range benchmarks {
		if only != "" && only != b.name {
			continue
		}
		n := max(int(float64(b.n)*scale), 1)
		var costs [2][]cost
		var ratios []float64
		for round := range rounds {
			var c [2]cost
			for turn := range 2 {
				i := (round + turn) % 2 // who is first changes
				if c[i], err = sides[i].run(b.run, n); err != nil {
					return fmt.Errorf("%s: %w", b.name, err)
				}
				costs[i] = append(costs[i], c[i])
			}
			ratios = append(ratios, c[1].micros/c[0].micros)
		}
		low, high := interval(ratios)
		above = above || low > most
		x, y := medians(costs[0]), medians(costs[1])
		fmt.Printf("%-7s %8.2f %8.2f   %.3f (%.3f to %.3f)     %6.0f %6.0f %8.1f %7.1f\n",
			b.name, x.micros, y.micros, median(ratios), low, high, x.bytes, y.bytes, x.allocs, y.allocs)
	}
	if above {
		return fmt.Errorf("a ratio is above %.2f", most)
	}
	return nil
}

// build builds the benchmarks of a commit, in a separate worktree; "": those of the
// checkout.
func build(root, scratch, commit string, i int) (s side, err error) {
	tree := root
	if commit != "" {
		tree = filepath.Join(scratch, "tree")
		if err := command(root, "git", "worktree", "add", "--detach", "--quiet", tree, commit); err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, command(root, "git", "worktree", "remove", "--force", tree)) }()
	}
	s = side{program: filepath.Join(scratch, "bench"+strconv.Itoa(i)), dir: scratch}
	return s, command(tree, "go", "test", "-c", "-o", s.program, "./bench")
}

func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// run runs one benchmark with n messages, after one of a single message that the testing
// package makes first. The rest of the process takes a few milliseconds.
func (s side) run(benchmark string, n int) (c cost, err error) {
	cmd := exec.Command(s.program, "-test.run", "^$", "-test.bench", benchmark,
		"-test.benchtime", strconv.Itoa(n)+"x", "-test.benchmem", "-test.timeout", (10 * time.Minute).String())
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return c, fmt.Errorf("%w\n%s", err, out)
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		for i := 1; i < len(fields); i++ {
			switch fields[i] {
			case "B/op":
				c.bytes, err = strconv.ParseFloat(fields[i-1], 64)
			case "allocs/op":
				c.allocs, err = strconv.ParseFloat(fields[i-1], 64)
			}
			if err != nil {
				return c, err
			}
		}
	}
	if c.allocs == 0 {
		return c, fmt.Errorf("no benchmark ran:\n%s", out)
	}
	c.micros = float64(cmd.ProcessState.UserTime().Nanoseconds()) / 1e3 / float64(n)
	return c, nil
}

func medians(all []cost) cost {
	of := func(part func(cost) float64) float64 {
		v := make([]float64, len(all))
		for i, c := range all {
			v[i] = part(c)
		}
		return median(v)
	}
	return cost{
		micros: of(func(c cost) float64 { return c.micros }),
		bytes:  of(func(c cost) float64 { return c.bytes }),
		allocs: of(func(c cost) float64 { return c.allocs }),
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// interval has the median of what v is a sample of, with a confidence of at least 95 %:
// the median is below the k-th smallest only if fewer than k of n coins show heads. With
// fewer than six values it is all of them, which is less sure.
func interval(v []float64) (low, high float64) {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	k, tail, next := 0, 0.0, math.Pow(0.5, float64(n)) // next: the chance of exactly k heads
	for k < n/2 && tail+next <= 0.025 {
		tail += next
		next *= float64(n-k) / float64(k+1)
		k++
	}
	k = max(k, 1)
	return v[k-1], v[n-k]
}
