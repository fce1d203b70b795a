package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	models "github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
)

// stream compares ways to read one long answer. All read it from the model's process, so
// that the cost of the connection is in each of them.
func (b *bench) stream(ctx context.Context) error {
	client := models.NewHTTPClient()
	defer client.CloseIdleConnections()
	c := models.Config{URL: b.at.Model, Client: client}
	messages, chat := models.NewAnthropic(models.AnthropicConfig{Config: c}), models.NewOpenAI(models.OpenAIConfig{Config: c})
	agent := backend(b.at.Model, client, "")
	const small, codec, user = 1, 2, 5 // of ways
	ways := []struct {
		name string
		read func() error
	}{
		{"bytes alone", func() error { return b.bare(client, "/messages", func([]byte) error { return nil }) }},
		{"json.Unmarshal into a small struct", func() error { return b.small(client) }},
		{"codec of the Messages API", func() error { return b.decode(ctx, messages, false) }},
		{"codec with raw events", func() error { return b.decode(ctx, messages, true) }},
		{"a session, whole messages", func() error { return b.session(ctx, agent, false) }},
		{"a session, each delta to the user", func() error { return b.session(ctx, agent, true) }},
		{"codec of chat completions", func() error { return b.decode(ctx, chat, false) }},
		{"the same with raw events", func() error { return b.decode(ctx, chat, true) }},
	}
	micros := make([][]float64, len(ways))
	for range b.rounds {
		for i, way := range ways {
			measure.Settle()
			began := measure.CPU()
			if err := way.read(); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			micros[i] = append(micros[i], (measure.CPU()-began).Seconds()*1e6/float64(b.deltas))
		}
	}
	per := make([]float64, len(ways))
	for i, way := range ways {
		per[i] = slices.Min(micros[i]) // other work on the machine only adds to it
		b.tell("processor time of an event: "+way.name, per[i], "µs")
	}
	b.least(b.limits.codec, "codec, times the events per second of json.Unmarshal", per[small]/per[codec])
	b.least(b.limits.user, "user of sdk, times the same", per[small]/per[user])
	return nil
}

// prompt asks for the long answer.
func (b *bench) prompt() string { return fmt.Sprintf("%s%d]]", longMark, b.deltas) }

// text is how many bytes of text the answer has.
func (b *bench) text() int { return b.deltas * len(" some text") }

// bare reads the answer without Troupe, line by line.
func (b *bench) bare(c *http.Client, path string, event func(data []byte) error) error {
	resp, err := c.Post(b.at.Model+path, "application/json", strings.NewReader(b.prompt()))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read to its end
	r := bufio.NewReaderSize(resp.Body, 4<<10)
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			if err := event(data); err != nil {
				return err
			}
		}
	}
}

// small decodes each event into the least that has the text.
func (b *bench) small(c *http.Client) error {
	var whole []byte
	err := b.bare(c, "/messages", func(data []byte) error {
		var e struct {
			Type  string `json:"type"`
			Delta struct {
				Text string `json:"text"`
			} `json:"delta"`
		}
		err := json.Unmarshal(data, &e)
		whole = append(whole, e.Delta.Text...)
		return err
	})
	return errors.Join(err, b.check(len(whole)))
}

// decode reads the answer with a codec.
func (b *bench) decode(ctx context.Context, m models.Model, raw bool) error {
	text, deltas := 0, 0
	prompt := m.Codec().Message(&models.Message{Role: models.User, Blocks: []models.Block{{Kind: models.Text, Text: b.prompt()}}})
	err := m.Stream(ctx, &models.Request{Model: "bench", Messages: [][]byte{prompt}, Raw: raw}, func(e *models.Event) bool {
		switch e.Kind {
		case models.Done:
			text += len(e.Block.Text)
		case models.Delta:
			deltas++
		case models.Start, models.Stop:
		}
		return true
	})
	if err == nil && raw && deltas < b.deltas {
		err = fmt.Errorf("%d of %d deltas came", deltas, b.deltas)
	}
	return errors.Join(err, b.check(text))
}

// session reads the answer as a user of package sdk.
func (b *bench) session(ctx context.Context, agent sdk.Backend, partial bool) error {
	o := b.options(agent, "")
	o.IncludePartialMessages = partial
	text, parts := 0, 0
	for m, err := range sdk.Query(ctx, b.prompt(), o) {
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *sdk.AssistantMessage:
			for _, block := range m.Message.Content {
				if t, ok := block.(*sdk.TextBlock); ok {
					text += len(t.Text)
				}
			}
		case *sdk.PartialAssistantMessage:
			parts += len(m.Text())
		}
	}
	if partial {
		return b.check(parts)
	}
	return b.check(text)
}

// check holds the length of what was read against that of the answer.
func (b *bench) check(text int) error {
	if text != b.text() {
		return fmt.Errorf("%d of %d bytes of text came", text, b.text())
	}
	return nil
}
