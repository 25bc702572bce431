// Package gosdk stands in for the SDK of Nebius, a cloud that no test logs in to: the provider compiles, and a login
// there fails. The SDK itself would add dozens of modules that are used for nothing else.
package gosdk

import (
	"context"
	"errors"

	"github.com/nebius/gosdk/auth"
)

// SDK is never made.
type SDK struct{}

// BearerToken is what the provider asks an SDK for.
func (*SDK) BearerToken(context.Context) (auth.BearerToken, error) {
	return auth.BearerToken{}, errAbsent
}

// Option is ignored, like Credentials.
type (
	Option      struct{}
	Credentials struct{}
)

// New fails.
func New(context.Context, ...Option) (*SDK, error) { return nil, errAbsent }

// WithCredentials is an option of New.
func WithCredentials(Credentials) Option { return Option{} }

// ServiceAccountReader makes credentials for WithCredentials.
func ServiceAccountReader(auth.PrivateKeyParser) Credentials { return Credentials{} }

var errAbsent = errors.New("this provider was built without the SDK of Nebius")
