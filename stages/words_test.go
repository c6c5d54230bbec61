package stages

import (
	"reflect"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	want := Words{"né ok", []string{"[CLS]", "né", "ok"}, [][2]int{{0, 0}, {0, 2}, {3, 5}},
		[]bool{true, false, false}}
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeWords(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct{ text, want string }{
		{"{", "damaged"},
		{`{"text":"ab","tokens":["a"],"offsets":[[0,1]]}`, "1 tokens, 1 offsets and 0 marks"},
		{`{"text":"é","tokens":["a"],"offsets":[[0,2]],"special":[false]}`, "characters 0 to 2 of 1"},
		{`{"text":"ab","tokens":["a"],"offsets":[[2,1]],"special":[false]}`, "characters 2 to 1"},
	} {
		if _, err := DecodeWords([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestSomeCalls(t *testing.T) {
	e := &Env{Calls: []Call{{Item: Item{ID: "a"}}, {Item: Item{ID: "b"}}, {Item: Item{ID: "c"}}}}
	for _, calls := range [][]int{{2, 0}, {1}} {
		some := e.Some(calls)
		for k := range some.Calls {
			some.Put("out", k, []byte(some.Calls[k].ID))
		}
		e.Take(some, calls)
	}
	for _, o := range e.Outputs {
		if string(o.Data) != e.Calls[o.Call].ID {
			t.Errorf("call %d has the output of %q", o.Call, o.Data)
		}
	}
	if len(e.Outputs) != 3 {
		t.Errorf("%d outputs", len(e.Outputs))
	}
}
