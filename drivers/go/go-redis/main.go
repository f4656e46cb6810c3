// A driver for go-redis. Shared connections use its automatic pipelining.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"redisbench.dev/drivers/driver"
)

type client struct {
	redis.UniversalClient
	process func(context.Context, redis.Cmder) error
}

func open(config *driver.Config) (driver.Client, int, error) {
	retries := config.Retries
	if retries == 0 {
		retries = -1 // 0 is the library's default of 3
	}
	options := &redis.UniversalOptions{
		Addrs: config.Addresses, IsClusterMode: config.Topology == "Cluster", DB: config.Database, Protocol: config.Protocol,
		Username: driver.Secret(config.UsernameFile), Password: driver.Secret(config.PasswordFile),
		MaxRetries: retries, DialTimeout: config.ConnectTimeout(),
		ReadTimeout: config.ResponseTimeout(), WriteTimeout: config.ResponseTimeout(), PoolTimeout: config.ResponseTimeout(),
		PoolSize: config.Connections, MinIdleConns: config.Connections, MaxActiveConns: config.Connections,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	shared := config.Sharing == "Shared"
	if shared {
		options.PipelinePoolSize, options.MinIdleConns = config.Connections, 0
		options.AutoPipelineOptions = &redis.AutoPipelineOptions{
			MaxConcurrentBatches: config.Connections, Unordered: config.Connections > 1,
		}
	}
	library := redis.NewUniversalClient(options)
	opened := client{library, library.Process}
	if shared {
		pipeliner, err := library.AutoPipeline()
		if err != nil {
			return nil, 0, err
		}
		opened.process = pipeliner.Process
	}
	if err := library.Ping(context.Background()).Err(); err != nil {
		return nil, 0, err
	}
	if shared {
		return opened, config.Connections, nil
	}
	// The pool fills in the background.
	for deadline := time.Now().Add(config.ConnectTimeout()); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if int(library.PoolStats().TotalConns) >= config.Connections {
			break
		}
	}
	return opened, int(library.PoolStats().TotalConns), nil
}

func (c client) Call(args [][]byte, key *int) (any, error) {
	words := make([]any, len(args))
	for index, arg := range args {
		words[index] = arg
	}
	command := redis.NewCmd(context.Background(), words...)
	if key != nil {
		command.SetFirstKeyPos(int8(*key))
	}
	err := c.process(context.Background(), command)
	var answer redis.Error
	if err == redis.Nil {
		return nil, nil
	} else if errors.As(err, &answer) {
		return nil, driver.ErrorReply(answer.Error())
	}
	return command.Val(), err
}

func (c client) Close() { _ = c.UniversalClient.Close() }

func main() { driver.Run("go-redis", "github.com/redis/go-redis/v9", open) }
