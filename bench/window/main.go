// Command window measures what a page of the window (package inspect/ui) costs the program that it looks at:
//
//	go run ./bench/window                    # 10,000 sessions in memory, nine rounds
//	go run ./bench/window -rounds 3 -sessions 2000
//
// Each session has a turn with one hook in each second. A round measures the program with no page, with
// one page that shows all sessions, and with 100 readers of the stream of events, in turn. The pages are
// in another process, as browsers are. It prints a line of JSON for each, and the medians of all rounds with
// what they are apart.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/bench/internal/throughput"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
)

// readEnv makes this program the pages: the address, and how many there are.
const readEnv = "TROUPE_BENCH_WINDOW"

const token = "a-token-of-the-measurement"

// figure is one measurement.
type figure struct {
	Pages int `json:"pages"`
	Round int `json:"round"`
	throughput.Crowded
}

func main() {
	log.SetFlags(0)
	if to := os.Getenv(readEnv); to != "" {
		if err := pages(to); err != nil {
			log.Fatal(err)
		}
		return
	}
	many, times, long := 10000, 9, 10*time.Second
	if os.Getenv("TROUPE_SMOKE") != "" {
		many, times, long = 50, 1, time.Second
	}
	sessions := flag.Int("sessions", many, "sessions at once")
	rounds := flag.Int("rounds", times, "rounds")
	period := flag.Duration("for", long, "how long each measurement takes")
	flag.Parse()
	if flag.NArg() > 0 || *sessions < 1 || *rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := play(context.Background(), *sessions, *rounds, *period); err != nil {
		log.Fatal(err)
	}
}

func play(ctx context.Context, sessions, rounds int, period time.Duration) (err error) {
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Shutdown(ctx)) }()
	w := ui.Handler(rt, ui.Config{Access: inspect.Access{Token: token}})
	defer w.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := inspect.NewServer(w, l)
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	defer func() { err = errors.Join(err, server.Close(), <-served) }()
	all, err := throughput.Hold(ctx, sessions, rt)
	defer func() { err = errors.Join(err, all.Close(ctx)) }()
	if err != nil {
		return err
	}
	if _, err := all.Round(ctx, time.Second); err != nil { // the first turns are slower
		return err
	}
	kinds := []int{0, 1, 100}
	got := map[int][]figure{}
	for round := range rounds {
		for i := range kinds {
			n := kinds[(i+round)%len(kinds)]
			f, err := measured(ctx, all, "http://"+server.Addr()+"/", n, period)
			if err != nil {
				return err
			}
			f.Round = round + 1
			got[n] = append(got[n], f)
			if err := measure.Print(f); err != nil {
				return err
			}
		}
	}
	return summary(sessions, kinds, got)
}

// measured measures with so many pages.
func measured(ctx context.Context, all *throughput.Held, base string, n int, period time.Duration) (f figure, err error) {
	measure.Settle()
	if n > 0 {
		// It starts the pages, and waits until they have their data.
		_, end, err := measure.Twin(readEnv + "=" + base + " " + strconv.Itoa(n))
		if err != nil {
			return f, err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	c, err := all.Round(ctx, period)
	return figure{Pages: n, Crowded: c}, err
}

// pages reads as pages of a browser do, until stdin ends. Each of them reads the stream; the first one
// has fetched the sessions, and asks for the tree and the charts as often as the overview does, and each second
// for the rows in view, as the table of sessions does.
func pages(to string) error {
	base, many, _ := strings.Cut(to, " ")
	n, err := strconv.Atoi(many)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for _, path := range []string{"api/tree", "api/history"} {
		if err := fetch(ctx, base+path); err != nil {
			return err
		}
	}
	rows, err := inView(ctx, base)
	if err != nil {
		return err
	}
	failed, begun := make(chan error, n), make(chan struct{}, n)
	for range n {
		go func() { failed <- stream(ctx, base, begun) }()
	}
	for range n {
		select {
		case err := <-failed:
			return err
		case <-begun:
		}
	}
	fmt.Println("begun")
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	second := time.NewTicker(time.Second)
	for again := time.NewTicker(10 * time.Second); ; {
		select {
		case <-second.C:
			if err := fetch(ctx, rows); err != nil {
				return err
			}
		case <-over:
			return nil
		case err := <-failed:
			return fmt.Errorf("a stream has ended: %w", err)
		case <-again.C:
			if err := errors.Join(fetch(ctx, base+"api/tree"), fetch(ctx, base+"api/history")); err != nil {
				return err
			}
		}
	}
}

func request(ctx context.Context, address string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody) //nolint:gosec // the address is that of the program which is measured
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r) //nolint:gosec // as above
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", address, resp.Status), resp.Body.Close())
	}
	return resp, nil
}

func fetch(ctx context.Context, address string) error {
	resp, err := request(ctx, address)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// inView is the address of the rows that a person sees first.
func inView(ctx context.Context, base string) (string, error) {
	resp, err := request(ctx, base+"api/sessions")
	if err != nil {
		return "", err
	}
	var all struct{ Sessions []struct{ ID string } }
	if err := errors.Join(json.NewDecoder(resp.Body).Decode(&all), resp.Body.Close()); err != nil {
		return "", err
	}
	ids := url.Values{}
	for _, s := range all.Sessions[:min(len(all.Sessions), 40)] {
		ids.Add("id", s.ID)
	}
	return base + "api/rows?" + ids.Encode(), nil
}

// stream reads the stream of events, and says when the first frame is there.
func stream(ctx context.Context, base string, begun chan<- struct{}) error {
	resp, err := request(ctx, base+"events")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return err
	}
	begun <- struct{}{}
	if _, err = io.Copy(io.Discard, resp.Body); err == nil {
		err = io.EOF
	}
	return err
}

// median of what the rounds say.
func median(all []figure, of func(*figure) float64) float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = of(&all[i])
	}
	return measure.Median(values)
}

// apart is how much more a number is than another one, in percent.
func apart(a, b float64) float64 { return float64(int(1000*(a/b-1))) / 10 }

func summary(sessions int, kinds []int, got map[int][]figure) error {
	cpu, p99 := func(f *figure) float64 { return f.CPU }, func(f *figure) float64 { return f.P99 }
	for _, n := range kinds {
		one := struct {
			Sessions int     `json:"sessions"`
			Pages    int     `json:"pages"`
			Rounds   int     `json:"rounds"`
			CPU      float64 `json:"cpu"`
			P99      float64 `json:"callback_p99_ms"`
			MoreCPU  float64 `json:"cpu_more_percent"` // than without a page
			MoreP99  float64 `json:"p99_more_percent"`
		}{
			sessions, n, len(got[n]), median(got[n], cpu), median(got[n], p99),
			apart(median(got[n], cpu), median(got[0], cpu)), apart(median(got[n], p99), median(got[0], p99)),
		}
		if err := measure.Print(one); err != nil {
			return err
		}
	}
	return nil
}
