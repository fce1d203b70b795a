package control

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
)

// Headers of a webhook.
const (
	TimestampHeader = "Troupe-Timestamp" // seconds since 1970, when this was sent
	SignatureHeader = "Troupe-Signature" // "v1=" and the signature, in hexadecimal
)

// Webhook notifies another program of a call that waits for a person: [Webhook.Notify]
// posts the [fleet.Approval] as JSON. The other program checks it with [Verify], and
// answers by [Handler] or troupe approvals, not by its response.
type Webhook struct {
	URL string // https, or http to this machine
	// Secret is the key of the signature. It is a secret, of at least 16 characters. Keep it out
	// of the environment that agents inherit: with it an agent can forge what a person sees.
	Secret string
}

// Format writes which fields are set, without the secret, for every verb.
func (w Webhook) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(w)) }

// LogValue returns the text that Format writes, for package log/slog.
func (w Webhook) LogValue() slog.Value { return slog.StringValue(shown.Struct(w)) }

// webhookLimit limits how long one request may take.
const webhookLimit = 10 * time.Second

// Notify posts an approval, and returns an error unless the answer is 2xx. A redirect is an
// error: the body may go nowhere else. Errors name only the host of the URL: for many services
// the rest of it is a secret.
func (w *Webhook) Notify(ctx context.Context, a fleet.Approval) error { //nolint:gocritic // a value, as Handle.Approvals has it
	if len(w.Secret) < 16 {
		return errors.New("control: the secret of the webhook has fewer than 16 characters, which can be guessed")
	}
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("control: the URL of the webhook is not valid") // the cause has parts of it
	}
	at := strconv.FormatInt(time.Now().Unix(), 10) //troupe:seam the receiver compares it with its clock; a call may wait for days
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(TimestampHeader, at)
	req.Header.Set(SignatureHeader, "v1="+hex.EncodeToString(sign(w.Secret, at, body)))
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: webhookLimit, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	resp, err := client.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err
		}
		return fmt.Errorf("control: the webhook at %s: %w", req.URL.Host, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("control: the webhook at %s answers %s", req.URL.Host, shown.Line(resp.Status))
	}
	return nil
}

// sign is HMAC-SHA256 over the timestamp, a dot and the body.
func sign(secret, at string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(at + ".")) // it never fails
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}

// ErrSignature says that a webhook was not signed with the secret, or too long ago.
var ErrSignature = errors.New("the signature of the webhook is wrong, or too old")

// Verify checks the signature of a webhook that came at now. One that is older than
// within, or as much in the future, is refused; 5 minutes is usual. The error is
// [ErrSignature].
func Verify(secret string, h http.Header, body []byte, now time.Time, within time.Duration) error {
	at := h.Get(TimestampHeader)
	seconds, err := strconv.ParseInt(at, 10, 64)
	given, ok := strings.CutPrefix(h.Get(SignatureHeader), "v1=")
	mac, failed := hex.DecodeString(given)
	if err != nil || !ok || failed != nil || secret == "" || !hmac.Equal(mac, sign(secret, at, body)) {
		return ErrSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > within || age < -within {
		return ErrSignature
	}
	return nil
}
