// Package message holds the messages that the actors of a session send each
// other, one sealed interface per mailbox, so that no actor imports another.
//
// Most messages are nudges: they say that there is work in the ledger or that
// the transport's link has changed, and may arrive twice or not at all without
// harm, because every incarnation looks for itself when it starts. Those that
// carry a decision carry the incarnation it belongs to.
package message
