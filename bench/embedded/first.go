package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/conformance"
	models "github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
)

// first measures the time from the start of a session to its first answer: of this agent and
// of Claude Code in turn, with the same model.
func (b *bench) first(ctx context.Context) error {
	client := models.NewHTTPClient()
	defer client.CloseIdleConnections()
	agent := backend(b.at.Scripted+"/v1", client, "")
	const more = 10 // sessions of this agent for one of Claude Code
	var mine, theirs []time.Duration
	var resident []int64
	for range b.rounds {
		for range more {
			took, _, err := answered(ctx, b.options(agent, ""))
			if err != nil {
				return err
			}
			mine = append(mine, took)
		}
		if b.claude == "" {
			continue
		}
		took, rss, err := b.ofClaude(ctx)
		if err != nil {
			return fmt.Errorf("measure Claude Code: %w", err)
		}
		theirs, resident = append(theirs, took), append(resident, rss)
	}
	b.tell("start to first answer", measure.Median(mine).Seconds()*1e3, "ms")
	if b.claude == "" {
		fmt.Println("SKIPPED: what is compared with Claude Code, which is not installed: run .ci/conformance-install, or give -claude PATH")
		return nil
	}
	b.claudeMB = measure.MB(measure.Median(resident))
	b.tell("the same of Claude Code", measure.Median(theirs).Seconds()*1e3, "ms")
	b.least(b.limits.sooner, "times sooner", measure.Median(theirs).Seconds()/measure.Median(mine).Seconds())
	b.tell("resident set of a session of Claude Code", b.claudeMB, "MB")
	return nil
}

// ofClaude is a session of Claude Code, in a private home.
func (b *bench) ofClaude(ctx context.Context) (took time.Duration, rss int64, err error) {
	home, err := os.MkdirTemp(b.dir, "home-")
	if err != nil {
		return 0, 0, err
	}
	env := map[string]string{}
	for _, kv := range conformance.OfflineEnv(b.at.Scripted, home) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return answered(ctx, &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{Path: b.claude}), Cwd: filepath.Dir(home), CleanEnv: true, Env: env, SettingSources: sdk.None(),
		SystemPrompt: sdk.PresetPrompt(""),
	})
}

// answered has a turn with a new session, and returns how long its first answer took, and
// how much is resident of the processes that it has.
func answered(ctx context.Context, o *sdk.Options) (took time.Duration, rss int64, err error) {
	others := measure.Children()
	began := time.Now()
	c := sdk.NewClient(o)
	if err := c.Connect(ctx); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	t, err := c.Send(ctx, sdk.UserText("say something [[scn:text]]"))
	if err != nil {
		return 0, 0, err
	}
	for m, err := range t.Messages(ctx) {
		if err != nil {
			return 0, 0, err
		}
		if _, ok := m.(*sdk.AssistantMessage); ok && took == 0 {
			took = time.Since(began)
		}
	}
	for _, pid := range measure.Children() {
		if !slices.Contains(others, pid) {
			rss += measure.RSSOf(pid)
		}
	}
	if took == 0 {
		err = errors.New("there was no answer")
	}
	return took, rss, err
}
