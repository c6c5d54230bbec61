package stages

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// A Table holds results in long form: key columns identify a row, number columns hold its results. The stage
// that makes it orders the rows.
type Table struct {
	Title   string   `json:"title"`
	Keys    []string `json:"keys"` // names of the key columns: axes, "item"
	Numbers []Column `json:"numbers"`
	Rows    []Row    `json:"rows"`

	// Ranked means that the order of the rows is a result, best first. Rows of other tables may be stored
	// sorted, and displayed in the experiment's order of ids.
	Ranked bool `json:"ranked,omitempty"`
}

// A Column describes a column of numbers.
type Column struct {
	Name      string    `json:"name"`
	Label     string    `json:"label,omitempty"` // the name for people; "" for Name
	Unit      string    `json:"unit,omitempty"`
	Direction Direction `json:"direction,omitempty"`
	Variant   string    `json:"variant,omitempty"` // of the scores' definition
	// Tolerance is the absolute difference within which a number counts as reproduced on another machine.
	Tolerance float64 `json:"tolerance"`
	// Digits is the number of decimals to display.
	Digits int `json:"digits"`
	// Marks names the number column that this one marks, "" for none: if a row's number here is 1, the
	// other column's number is displayed with an asterisk, whose meaning is this column's unit.
	Marks string `json:"marks,omitempty"`
}

// MixedVariants is the variant of a column whose scores have several definitions.
const MixedVariants = "mixed"

// A Row has a text for every key column and a number for every number column.
type Row struct {
	Keys    []string `json:"keys"`
	Numbers []Number `json:"numbers"`
}

// Number returns a row's number in a column, NaN without the column.
func (t Table) Number(r Row, column string) float64 {
	for k, c := range t.Numbers {
		if c.Name == column {
			return float64(r.Numbers[k])
		}
	}
	return math.NaN()
}

// A Number is a float64 whose NaN means undefined and is written as null.
type Number float64

// Undefined reports whether n has no value.
func (n Number) Undefined() bool { return math.IsNaN(float64(n)) }

func (n Number) MarshalJSON() ([]byte, error) {
	switch x := float64(n); {
	case math.IsNaN(x):
		return []byte("null"), nil
	case math.IsInf(x, 0):
		return []byte(strconv.Quote(strconv.FormatFloat(x, 'g', -1, 64))), nil
	default:
		return strconv.AppendFloat(nil, x, 'g', -1, 64), nil
	}
}

func (n *Number) UnmarshalJSON(b []byte) error {
	s := string(b)
	if s == "null" {
		*n = Number(math.NaN())
		return nil
	}
	if q, err := strconv.Unquote(s); err == nil {
		s = q
	}
	x, err := strconv.ParseFloat(s, 64)
	*n = Number(x)
	return err
}

// Encode returns the payload that holds t.
func (t Table) Encode() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // unreachable: JSON can represent every Table
	}
	return b
}

// DecodeTable reads a payload written by Encode.
func DecodeTable(b []byte) (Table, error) {
	var t Table
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("damaged table: %w", err)
	}
	for i, r := range t.Rows {
		if len(r.Keys) != len(t.Keys) || len(r.Numbers) != len(t.Numbers) {
			return t, fmt.Errorf("damaged table: row %d doesn't match the columns", i)
		}
	}
	return t, nil
}
