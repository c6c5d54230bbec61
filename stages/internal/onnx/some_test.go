package onnx

import (
	"fmt"
	"strings"
	"testing"
)

// TestSome holds that nodes are named where they are few and counted where they are many, in a line's length.
func TestSome(t *testing.T) {
	var many []string
	for i := range 400 {
		many = append(many,
			fmt.Sprintf("QuantizeLinear %q", strings.Repeat("/a/long/name", 40)+fmt.Sprint(i)), `Conv "c"`)
	}
	many = append(many, `B "b"`, `C "c"`, `D "d"`)
	for _, tt := range []struct {
		labels []string
		want   string
	}{
		{[]string{`Relu "a"`, `Conv "b"`}, `Relu "a", Conv "b"`},
		{[]string{`A "a"`, `B "b"`, `B "c"`, `B "d"`}, `3 B, 1 A, such as A "a"`},
		{many,
			`400 QuantizeLinear, 400 Conv, 1 B, 2 other operators, such as QuantizeLinear ` +
				`"/a/long/name/a/long/name/a/long/na…ame/a/long/name/a/long/name/a/long/name/a/long/na`},
	} {
		if got := Some(tt.labels); !strings.HasPrefix(got, tt.want[:min(len(tt.want), 100)]) ||
			len(got) > 250 {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
