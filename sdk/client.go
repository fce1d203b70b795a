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

// Client holds a conversation of many turns. It is safe for concurrent use,
// except that one goroutine at a time may read its messages.
type Client struct {
	closeTimeout time.Duration
	picksModel   bool         // ResolveModel does
	structured   bool         // Options.OutputFormat is given
	repairs      int          // Options.OutputRepairs
	sessionID    string       // Options.SessionID
	unpark       func() error // removes the directory of a prewarmed session; nil: the session was not prewarmed

	mu      sync.Mutex
	opts    *Options // the client's own; nil once connected
	dialing *dial    // the present or last attempt to connect
	closed  bool
	unsure  bool                      // nobody waited for the answer to a claim
	left    []protocol.BackgroundTask // that a run did not wait for
}

// dial is an attempt to connect, and then the connection.
type dial struct {
	home   *runtime.Runtime
	cancel context.CancelCauseFunc // of the attempt; nil once connected
	done   *kernel.Promise[struct{}]
	link   // set before done resolves
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

// Connect starts the agent and waits until it is initialized. When it fails
// nothing is left of the session, and it may be called again; on a connected
// client it does nothing. A second call while the first is under way shares
// its outcome.
//
// Mistakes in the options are *[ConfigError], all of them joined, found before
// anything starts. An agent that cannot be started is a *[StartError], one that
// ends at once an *[ExitError], one that refuses a *[ControlError]. When ctx ends
// first, the error is an *[UnfinishedError]; the agent is killed, and Connect
// returns at most Options.CloseTimeout later.
func (c *Client) Connect(ctx context.Context) error {
	c.mu.Lock()
	if d := c.dialing; d != nil && !c.closed {
		c.mu.Unlock()
		_, err := d.done.Wait(ctx, d.home.Executor())
		return ended(ctx, err)
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
	} else {
		c.dialing = nil
	}
	c.mu.Unlock()
	if err != nil {
		err = ended(ctx, err)
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
		return nil, ended(ctx, context.Cause(ctx))
	}
	home, err := homeOf(c.opts)
	if err != nil {
		return nil, err
	}
	c.dialing = &dial{home: home, cancel: cancel, done: kernel.NewPromise[struct{}]()}
	return c.dialing, nil
}

// open starts the session.
func openSession(ctx context.Context, o *Options, home *runtime.Runtime) (link, error) {
	var l link
	spec, err := specOf(o)
	if err != nil {
		return l, err
	}
	l.dialect, l.gated = spec.Dialect, len(spec.Options.Hooks) > 0 || spec.Options.CanUseTool != nil
	l.skips = spec.Options.AllowDangerouslySkipPermissions
	l.servers = newServers(&spec)
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

// Send hands a user message to the agent; [UserText] makes one. It returns once
// the message is queued, and waits for room if there is none. Messages are
// answered in order.
func (c *Client) Send(ctx context.Context, m UserMessage) (*Turn, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	t, err := d.session.Send(ctx, &m)
	if err != nil {
		return nil, ended(ctx, err)
	}
	return &Turn{t}, nil
}

// Messages yields every message of the session that nobody has read yet, until it
// ends: those of all turns, of turns that the agent starts by itself, of
// background tasks, and what comes between. An error comes last: why the
// session ended, if that was not a Close, or why ctx ended, or [ErrBusy].
// Breaking off leaves the rest for the next reader.
func (c *Client) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		d, err := c.connected()
		if err != nil {
			yield(nil, err)
			return
		}
		relay(ctx, d.session.Messages(ctx), yield)
	}
}

// AwaitIdle waits until no turn is under way and no background task lives, or
// until the session has ended. Somebody must read the messages meanwhile,
// unless they are few or Options.Discard is set.
func (c *Client) AwaitIdle(ctx context.Context) error {
	d, err := c.connected()
	if err != nil {
		return err
	}
	return ended(ctx, d.session.AwaitIdle(ctx))
}

// State is the session's state at this instant.
func (c *Client) State() session.State {
	if d, err := c.connected(); err == nil {
		return d.session.State()
	}
	return session.StateAdmitting
}

// SessionID is the agent's own id of the session, by which Options.Resume takes
// it up again. The agent says it in the first turn; before, it is
// Options.SessionID, or "".
func (c *Client) SessionID() string {
	if d, err := c.connected(); err == nil {
		if id := d.session.AgentSessionID(); id != "" {
			return id
		}
	}
	return c.sessionID
}

// Warnings are the legal and probably unintended things in the options, such as
// a rule that hides CanUseTool. They come as events, too. nil before Connect.
func (c *Client) Warnings() []Warning {
	if d, err := c.connected(); err == nil {
		return d.session.Warnings()
	}
	return nil
}

// Initialized is the agent's answer to the initialize request: its commands,
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

// Events yields the session's events from the start of the loop until the
// session or ctx ends; none if the client is not connected. Options.OnEvent sees
// them from the start of the session.
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

// Call makes a control request of any kind and decodes the answer into resp,
// which may be nil. The agent's refusal is a *[ControlError], no answer within
// Limits.Control a *[TimeoutError].
func (c *Client) Call(ctx context.Context, req protocol.HostRequest, resp any) error {
	d, err := c.connected()
	if err != nil {
		return err
	}
	if req == nil {
		return errors.New("control request is nil; pass a request, or use Control")
	}
	if err := d.checkSettings(req); err != nil {
		return err
	}
	return ended(ctx, d.session.Call(ctx, req, resp, 0))
}

// Control makes a control request that this package has no method for. req is
// encoded as a JSON object, nil as an empty one; its subtype is added. resp is
// decoded into and may be nil.
func (c *Client) Control(ctx context.Context, subtype string, req, resp any) error {
	if subtype == "" {
		return errors.New("control request has an empty subtype, which an agent does not answer")
	}
	body, err := controlBody(subtype, req)
	if err != nil {
		return err
	}
	return c.Call(ctx, &protocol.UnknownHostRequest{Name: subtype, Raw: body}, resp)
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
