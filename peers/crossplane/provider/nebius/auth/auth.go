// Package auth has the types that the provider names.
package auth

// BearerToken is a token, if there were any.
type BearerToken struct{ Token string }

// PrivateKeyParser reads nothing.
type PrivateKeyParser struct{}

// NewPrivateKeyParser takes a key, the id of its public key and the id of a service account.
func NewPrivateKeyParser([]byte, string, string) PrivateKeyParser { return PrivateKeyParser{} }
