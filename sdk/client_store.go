package sdk

import "context"

// Mirrored waits until everything that the agent has stored so far is in
// Options.SessionStore, or is lost, which a session.MirrorFailed event says. Results do not
// wait for the store; call Mirrored before you rely on another machine. Without a store it
// returns at once, and after the end of the session, too. The error is that of ctx, or
// matches session.ErrChildFull if 1,024 writes of the agent wait for the store.
func (c *Client) Mirrored(ctx context.Context) error {
	d, err := c.connected()
	if err != nil {
		return err
	}
	return d.session.Mirrored(ctx)
}
