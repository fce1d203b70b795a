package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Turn is a user message that was sent, and the agent's work on it. [Client.Send] returns
// it. It is [runtime.Turn].
type Turn = runtime.Turn

// Client is a session for a conversation of many turns. It is safe for concurrent use,
// but only one goroutine at a time may read its messages.
type Client struct {
	closeTimeout time.Duration
	picksModel   bool         // Options.ResolveModel is set
	structured   bool         // Options.OutputFormat is set
	repairs      int          // Options.OutputRepairs
	sessionID    string       // Options.SessionID
	unpark       func() error // removes the directory of a prewarmed session; nil: the session was not prewarmed

	mu      sync.Mutex
	opts    *Options // the client's own; nil once connected
	dialing *dial    // the present or last attempt to connect
	closed  bool
	unsure  bool                      // an answer to a claim was not waited for
	left    []protocol.BackgroundTask // that a run did not wait for
}

// dial is an attempt to connect, and then the connection.
type dial struct {
	home   *runtime.Runtime
	cancel context.CancelCauseFunc   // of the attempt; nil once connected
	done   *kernel.Promise[struct{}] // nil once connected
	link                             // set before done resolves
}

// NewClient returns a client that is not connected. Nothing is checked or
// started before [Client.Connect]. opts may be nil.
func NewClient(opts *Options) *Client {
	own := Options{}
	if opts != nil {
		own = *opts
	}
	return &Client{
		opts: &own, closeTimeout: closeTimeout(&own), sessionID: own.SessionID, picksModel: own.ResolveModel != nil,
		structured: own.OutputFormat != nil, repairs: repairs(&own),
	}
}

// Connect starts the agent and waits until it is initialized. If it fails, it leaves
// nothing of the session behind and may be called again. On a connected client it does
// nothing. A call while another one runs waits for it and returns its error.
//
// Mistakes in the options are *[ConfigError] values, joined, and found before anything
// starts. If the agent cannot be started, the error is a *[StartError]; if it ends at
// once, an *[ExitError]; if it refuses to initialize, a *[ControlError]. If ctx ends
// first, the error is an *[session.UnfinishedError]; the agent is killed, and Connect returns
// at most Options.CloseTimeout later.
func (c *Client) Connect(ctx context.Context) error {
	c.mu.Lock()
	if d := c.dialing; d != nil && !c.closed {
		c.mu.Unlock()
		if d.done == nil {
			return nil
		}
		_, err := d.done.Wait(ctx, d.home.Executor())
		return kernel.Ended(ctx, err)
	}
	dialing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d, err := c.dial(ctx, cancel)
	opts := c.opts
	c.mu.Unlock()
	if err != nil {
		return err
	}
	d.link, err = openSession(dialing, opts, d.home)
	c.mu.Lock()
	if err == nil {
		c.opts, d.cancel = nil, nil
		c.dialing = &dial{home: d.home, link: d.link}
	} else {
		c.dialing = nil
	}
	c.mu.Unlock()
	if err != nil {
		err = kernel.Ended(ctx, err)
		d.done.Fail(err)
		return err
	}
	d.done.Resolve(struct{}{})
	return nil
}

// dial begins an attempt to connect; mu is held.
func (c *Client) dial(ctx context.Context, cancel context.CancelCauseFunc) (*dial, error) {
	if c.closed {
		return nil, ErrClosed
	}
	if ctx.Err() != nil {
		return nil, kernel.Ended(ctx, context.Cause(ctx))
	}
	home, err := homeOf(c.opts)
	if err != nil {
		return nil, err
	}
	c.dialing = &dial{home: home, cancel: cancel, done: kernel.NewPromise[struct{}]()}
	return c.dialing, nil
}

// openSession starts the session.
func openSession(ctx context.Context, o *Options, home *runtime.Runtime) (link, error) {
	var l link
	spec, err := specOf(o)
	if err != nil {
		return l, err
	}
	l.dialect, l.gated = spec.Dialect, len(o.Hooks) > 0 || o.CanUseTool != nil || o.Policy != nil
	l.skips = spec.Options.AllowDangerouslySkipPermissions
	l.servers = newServers(&spec)
	if len(o.Children) > 0 {
		spec.ChildContext = clientOf(o, l, home)
	}
	session, err := home.Start(ctx, spec)
	if err == nil {
		err = session.AwaitReady(ctx)
	}
	if err == nil {
		l.session = session
		l.closeServersAtEnd(home)
		return l, nil
	}
	over, cancel := kernel.WithTimeout(context.WithoutCancel(ctx), home.Clock(), closeLimit(closeTimeout(o)))
	defer cancel()
	if session != nil {
		err = errors.Join(err, session.Kill(over))
	}
	return l, errors.Join(err, l.servers.close(over))
}

// connected is the connection, if there is one.
func (c *Client) connected() (*dial, error) {
	c.mu.Lock()
	d, closed := c.dialing, c.closed
	c.mu.Unlock()
	if d != nil {
		if d.done == nil {
			return d, nil
		}
		select {
		case <-d.done.Done():
			_, err := d.done.Value()
			return d, err
		default:
		}
	}
	if closed {
		return nil, ErrClosed
	}
	return nil, ErrNotConnected
}

// Send queues a user message for the agent; [UserText] makes one. It returns when the
// message is queued. If the queue is full, it waits until there is room. The agent
// answers messages in order. If the session is draining, the error is
// [session.ErrDraining].
func (c *Client) Send(ctx context.Context, m UserMessage) (*Turn, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	return d.session.Send(ctx, &m)
}

// Messages yields every message of the session that has not been read yet, until the
// session ends: messages of all turns, also of turns that the agent starts itself, of
// background tasks, and messages between turns. If there is an error, it is yielded
// last: why the session ended, unless [Client.Close] ended it; why ctx ended; or
// [ErrBusy]. If the loop ends early, the next reader gets the remaining messages.
func (c *Client) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		d, err := c.connected()
		if err != nil {
			yield(nil, err)
			return
		}
		d.session.Messages(ctx)(yield)
	}
}

// AwaitIdle waits until no turn and no background task runs, or until the session has
// ended. Another goroutine must read the messages meanwhile, unless they are fewer than
// Options.Limits allow or Options.Discard is set.
func (c *Client) AwaitIdle(ctx context.Context) error {
	d, err := c.connected()
	if err != nil {
		return err
	}
	return kernel.Ended(ctx, d.session.AwaitIdle(ctx))
}

// AwaitDone is [Client.AwaitIdle], but it waits for background tasks no longer than
// Limits.Background, and returns those that are left. [Run] and [Query] wait the same way.
func (c *Client) AwaitDone(ctx context.Context) ([]protocol.BackgroundTask, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	err = c.awaitDone(ctx, d.session)
	return c.unfinished(), kernel.Ended(ctx, err)
}

// State returns the session's current state. Before [Client.Connect] it is
// StateAdmitting.
func (c *Client) State() session.State {
	if d, err := c.connected(); err == nil {
		return d.session.State()
	}
	return session.StateAdmitting
}

// ID returns the id of the session in its runtime, as in events and in runtime.Tree; "" before
// Connect.
func (c *Client) ID() string {
	d, err := c.connected()
	if err != nil {
		return ""
	}
	return d.session.ID()
}

// SessionID returns the agent's id of the session, for Options.Resume. The agent
// reports it in the first turn; before, SessionID returns Options.SessionID, which may
// be "".
func (c *Client) SessionID() string {
	if d, err := c.connected(); err == nil {
		if id := d.session.AgentSessionID(); id != "" {
			return id
		}
	}
	return c.sessionID
}

// Warnings returns the options that are valid but perhaps do not do what you intend,
// such as a rule for which CanUseTool is not called. Each is also a
// [session.WarningIssued] event. It is nil before [Client.Connect].
func (c *Client) Warnings() []session.Warning {
	if d, err := c.connected(); err == nil {
		return d.session.Warnings()
	}
	return nil
}

// Initialized returns the agent's answer to the initialize request: its commands,
// models, subagents and account.
func (c *Client) Initialized() (*protocol.InitializeResponse, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	r := &protocol.InitializeResponse{}
	if err := protocol.Unmarshal(d.session.Initialized(), r); err != nil {
		return nil, fmt.Errorf("the answer to initialize: %w", err)
	}
	return r, nil
}

// Events yields the session's events from the start of the loop until the session or
// ctx ends. It yields nothing if the client is not connected. To get the events from
// the start of the session, use Options.OnEvent.
func (c *Client) Events(ctx context.Context) iter.Seq[EventRecord] {
	return func(yield func(EventRecord) bool) {
		d, err := c.connected()
		if err != nil || d.session.State().Terminal() {
			return
		}
		for e := range d.session.Events(ctx) {
			if !yield(e) {
				return
			}
		}
	}
}

// Control sends a control request for which this package has no method. req is encoded
// as a JSON object (nil as an empty object), and the subtype is added to it. The answer
// is decoded into resp, which may be nil. The errors are those of [Call].
func (c *Client) Control(ctx context.Context, subtype string, req, resp any) error {
	if subtype == "" {
		return errors.New("control request has an empty subtype, which an agent does not answer")
	}
	body, err := controlBody(subtype, req)
	if err != nil {
		return err
	}
	return c.call(ctx, &protocol.UnknownHostRequest{Name: subtype, Raw: body}, resp)
}

func controlBody(subtype string, req any) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if req != nil {
		b, err := json.Marshal(req)
		if err == nil {
			err = protocol.Unmarshal(b, &fields)
		}
		if err != nil {
			return nil, fmt.Errorf("control request %s: the request is not a JSON object: %w", subtype, err)
		}
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	name, err := json.Marshal(subtype)
	if err != nil {
		return nil, err
	}
	fields["subtype"] = name
	return json.Marshal(fields)
}
