package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	root      string
	seed      uint64
	n         int
	histories int
	covered   int
	workers   int
	list      bool
	sample    bool
	only      *regexp.Regexp
	results   string
	again     bool
	work      string
	units     bool
	of        subject
}

func flags() (options, error) {
	var o options
	flag.StringVar(&o.root, "root", ".", "the `directory` of the module")
	flag.Uint64Var(&o.seed, "seed", 1, "of the draw")
	flag.IntVar(&o.n, "n", 420, "how many mutants are drawn")
	flag.IntVar(&o.histories, "histories", 2000, "how many histories may be played to find a mutant, by all simulations together; 0: unit tests alone")
	flag.IntVar(&o.covered, "covered", 200, "histories of all simulations that say what is executed; 0: what an earlier run has left in -work")
	flag.IntVar(&o.workers, "workers", 2, "mutants that are tried at once")
	flag.BoolVar(&o.list, "list", false, "only print what is drawn")
	flag.BoolVar(&o.sample, "sample", false, "only the mutants of sample.txt, by simulations alone; one that lives is an error")
	flag.StringVar(&o.results, "results", "", "the `file` that gets what became of each, and of which those that it has are not tried again")
	flag.BoolVar(&o.again, "again", false, "draw none: try those of the file of results again that simulations have not found")
	flag.BoolVar(&o.units, "units", true, "try those that live on unit tests, too")
	flag.StringVar(&o.work, "work", "", "the `directory` for the copy of the tree and what is built, which is kept. Default: a temporary one")
	of := flag.String("of", "runtime", "what is broken: runtime, or loop, which is the embedded agent")
	only := flag.String("only", "", "only mutants whose key matches the `expression`")
	flag.Parse()
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, err
	}
	if o.of, err = subjectOf(*of); err != nil {
		return o, err
	}
	return o, nil
}

func run(ctx context.Context) error {
	o, err := flags()
	if err != nil {
		return err
	}
	if err := os.Setenv("GOFLAGS", "-trimpath "+os.Getenv("GOFLAGS")); err != nil { // the copy shares what is compiled
		return err
	}
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "mutants-"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(o.work) }()
	}
	all, err := sites(o.root, o.of.dirs())
	if err != nil {
		return err
	}
	drawn, err := chosen(ctx, o, all)
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range drawn {
			fmt.Println(s.Key)
		}
		return nil
	}
	return try(ctx, o, all, drawn)
}

// chosen is the mutants that are tried.
func chosen(ctx context.Context, o options, all []*Site) ([]*Site, error) {
	if o.sample {
		return sampled(all)
	}
	if o.again {
		return recorded(o.results, all)
	}
	x, err := o.of.coverage(ctx, o.root, o.work, o.covered)
	if err != nil {
		return nil, err
	}
	return o.of.draw(all, x, o.seed, o.n), nil
}

// try plants the mutants and tries them.
func try(ctx context.Context, o options, all, drawn []*Site) error {
	number := map[*Site]int{}
	for i, s := range drawn {
		number[s] = i + 1
	}
	tree := filepath.Join(o.work, "tree")
	if err := errors.Join(os.RemoveAll(tree), copyTree(o.root, tree), plant(tree, inOrder(all, drawn), number)); err != nil {
		return err
	}
	b := &bench{of: o.of, dir: tree, bins: o.work, limit: 3 * time.Minute, built: map[string]*unit{}, plain: map[string]string{}}
	t, err := newTable(o, drawn)
	if err != nil {
		return err
	}
	if err := b.sound(ctx); err != nil {
		return err
	}
	work, failed := make(chan *Site), make(chan error, o.workers)
	var workers sync.WaitGroup
	for range o.workers {
		workers.Go(func() {
			for s := range work {
				fate, err := b.judge(ctx, o, s, number[s])
				if err == nil {
					err = t.note(s, fate)
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	err = feed(ctx, work, failed, t.left())
	close(work)
	workers.Wait()
	if err != nil {
		return err
	}
	return t.finish(o)
}

func feed(ctx context.Context, work chan<- *Site, failed <-chan error, sites []*Site) error {
	for _, s := range sites {
		select {
		case work <- s:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// sound runs the simulations without a mutant.
func (b *bench) sound(ctx context.Context) error {
	fate, err := b.simulate(ctx, &Site{}, 0, 0, 100)
	if err == nil && fate.By != "" {
		err = fmt.Errorf("%s fails without a mutant: %s", fate.By, fate.How)
	}
	return err
}

// judge tries one mutant: a few histories first, then the rest, then the unit tests.
func (b *bench) judge(ctx context.Context, o options, s *Site, n int) (Fate, error) {
	var lives Fate
	for _, histories := range []int{100, 500, o.histories} {
		if histories = min(histories, o.histories); histories <= lives.Played {
			continue
		}
		fate, err := b.simulate(ctx, s, n, lives.Played, histories)
		if err != nil || fate.By != "" {
			return fate, err
		}
		if lives.Played > 0 && lives.Changed == "" {
			fate.Changed = ""
		}
		lives = fate
	}
	if o.sample || !o.units {
		return lives, nil
	}
	fate, err := b.unitTests(ctx, n, testsOf(s.File))
	fate.Played, fate.Changed = lives.Played, lives.Changed
	return fate, err
}
