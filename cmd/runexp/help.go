package main

import (
	"context"
	"io"
)

const helpHelp = `usage: runexp help [VERB]

Tells what the command, or one of its verbs, does.

example:
  runexp help run
`

func helpVerb() *verb {
	return &verb{
		name: "help", short: "tell more about a verb", help: helpHelp, flags: newFlags("help"),
		run: func(_ context.Context, u *ui, args []string) error {
			if len(args) == 0 {
				writeUsage(u.out)
				return nil
			}
			v := findVerb(args[0])
			if v == nil {
				return unknownVerb(args[0])
			}
			_, err := io.WriteString(u.out, v.help)
			return err
		},
	}
}
