// A driver for rueidis. Shared connections use its automatic pipelining.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/bits"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"redisbench.dev/drivers/driver"
)

type client struct {
	rueidis.Client
	timeout time.Duration
}

func open(config *driver.Config) (driver.Client, int, error) {
	shared := config.Sharing == "Shared"
	if shared && bits.OnesCount(uint(config.Connections)) != 1 {
		return nil, 0, fmt.Errorf("rueidis shares a power of two of connections, not %d: change pool.size", config.Connections)
	}
	var dials atomic.Int64
	library, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: config.Addresses, ForceSingleClient: config.Topology != "Cluster", SelectDB: config.Database,
		Username: driver.Secret(config.UsernameFile), Password: driver.Secret(config.PasswordFile),
		AlwaysRESP2: config.Protocol == 2, DisableCache: true, Dialer: net.Dialer{Timeout: config.ConnectTimeout()},
		DialCtxFn: func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dials.Add(1)
			return dialer.DialContext(ctx, "tcp", address)
		},
		ConnWriteTimeout: config.ResponseTimeout(), DisableRetry: config.Retries == 0,
		RetryDelay: func(attempts int, _ rueidis.Completed, _ error) time.Duration {
			if attempts > config.Retries {
				return -1
			}
			return 0
		},
		PipelineMultiplex: bits.Len(uint(config.Connections)) - 1, BlockingPoolSize: config.Connections,
		BlockingPoolMinSize: config.Connections, DisableAutoPipelining: !shared,
	})
	if err != nil {
		return nil, 0, err
	}
	opened := client{library, config.ResponseTimeout()}
	// Connections are made by calls that find none free.
	for deadline := time.Now().Add(config.ConnectTimeout()); int(dials.Load()) < config.Connections; {
		results := make(chan error)
		for range 4 * config.Connections {
			go func() {
				_, err := opened.Call([][]byte{[]byte("PING")}, nil)
				results <- err
			}()
		}
		for range 4 * config.Connections {
			if failure := <-results; failure != nil {
				err = failure
			}
		}
		if err != nil || time.Now().After(deadline) {
			break
		}
	}
	return opened, int(dials.Load()), err
}

func (c client) Call(args [][]byte, key *int) (any, error) {
	command := c.B().Arbitrary(string(args[0]))
	for index, arg := range args[1:] {
		if key != nil && index+1 == *key {
			command = command.Keys(string(arg))
		} else {
			command = command.Args(string(arg))
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	reply, err := c.Do(limit, command.Build()).ToAny()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	} else if answer, ok := rueidis.IsRedisErr(err); ok {
		text := answer.Error()
		// The library cuts off ERR. The first words of other errors have no small letters.
		if first, _, _ := strings.Cut(text, " "); first != strings.ToUpper(first) {
			text = "ERR " + text
		}
		return nil, driver.ErrorReply(text)
	} else if limit.Err() != nil {
		return nil, os.ErrDeadlineExceeded
	}
	return reply, err
}

func main() { driver.Run("rueidis", "github.com/redis/rueidis", open) }
