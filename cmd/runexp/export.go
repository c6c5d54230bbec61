package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// exportPort writes what a port holds to files in dir, and returns their names.
func exportPort(dir string, port *stages.Port, d stages.Data) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	base := filepath.Join(dir, port.Name)
	switch port.Type.Form {
	case stages.FormTensor:
		return exportTensors(base, d)
	case stages.FormTable:
		return exportTable(base+".csv", d)
	}
	file := base + "." + cmp.Or(d.Facts["ext"], "bin")
	b, err := d.Load(0)
	if err != nil {
		return nil, err
	}
	return []string{file}, os.WriteFile(file, b, 0o666)
}

// exportTensors writes one .npy with all items, or one an item in a folder when
// their shapes differ, and a .csv that says which is which.
func exportTensors(base string, d stages.Data) ([]string, error) {
	tensor := func(i int) (stages.Tensor, error) {
		b, err := d.Load(i)
		if err != nil {
			return stages.Tensor{}, err
		}
		return stages.DecodeTensor(b)
	}
	var first stages.Tensor
	alike, single := true, true
	values := make([]float64, d.Items.Len())
	for i := range d.Items.Len() {
		t, err := tensor(i)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = t
		}
		alike = alike && t.DType == first.DType && slices.Equal(t.Shape, first.Shape)
		if single = single && t.Len() == 1; single {
			values[i] = t.Float64s()[0]
		}
	}
	if !single {
		values = nil
	}
	names := []string{base + ".npy", base + ".csv"}
	if !alike {
		names = []string{base + ".csv"}
		if err := os.MkdirAll(base, 0o777); err != nil {
			return nil, err
		}
	}
	if err := exportItems(base+".csv", d.Items, values); err != nil {
		return nil, err
	}
	if alike {
		shape := append([]int{d.Items.Len()}, first.Shape...)
		return names, writeFile(base+".npy", func(w io.Writer) error {
			return npy(w, cmp.Or(first.DType, stages.F32), shape, d.Items.Len(), tensor)
		})
	}
	for i := range d.Items.Len() {
		t, err := tensor(i)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(base, fmt.Sprintf("%06d.npy", i))
		err = writeFile(file, func(w io.Writer) error {
			return npy(w, t.DType, t.Shape, 1, func(int) (stages.Tensor, error) { return t, nil })
		})
		if err != nil {
			return nil, err
		}
		names = append(names, file)
	}
	return names, nil
}

// npy writes n tensors one after another as one array in NumPy's format,
// version 1.0.
func npy(w io.Writer, dtype stages.DType, shape []int, n int, tensor func(int) (stages.Tensor, error)) error {
	var dims strings.Builder
	for _, d := range shape {
		fmt.Fprintf(&dims, "%d, ", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype.NPY(), strings.TrimSuffix(dims.String(), " "))
	const before = 10 // bytes: the magic, the version, the header's length
	pad := (64 - (before+len(header)+1)%64) % 64
	header += strings.Repeat(" ", pad) + "\n"
	if _, err := fmt.Fprintf(w, "\x93NUMPY\x01\x00%c%c%s", len(header)&0xff, len(header)>>8, header); err != nil {
		return err
	}
	for i := range n {
		t, err := tensor(i)
		if err != nil {
			return err
		}
		if _, err := w.Write(t.Raw); err != nil {
			return err
		}
	}
	return nil
}

// exportItems writes the items' ids, and their values where they are numbers.
func exportItems(file string, items stages.Items, values []float64) error {
	return writeFile(file, func(w io.Writer) error {
		c := csv.NewWriter(w)
		head := []string{"item", "origin"}
		if values != nil {
			head = append(head, "value")
		}
		c.Write(head)
		for i := range items.Len() {
			it, err := items.At(i)
			if err != nil {
				return err
			}
			row := []string{it.ID, it.Origin}
			if values != nil {
				row = append(row, numeral(values[i]))
			}
			c.Write(row)
		}
		c.Flush()
		return c.Error()
	})
}

func exportTable(file string, d stages.Data) ([]string, error) {
	b, err := d.Load(0)
	if err != nil {
		return nil, err
	}
	t, err := stages.DecodeTable(b)
	if err != nil {
		return nil, err
	}
	return []string{file}, writeFile(file, func(w io.Writer) error {
		c := csv.NewWriter(w)
		head := slices.Clone(t.Keys)
		for _, n := range t.Numbers {
			head = append(head, n.Name)
		}
		c.Write(head)
		for _, r := range t.Rows {
			row := slices.Clone(r.Keys)
			for _, n := range r.Numbers {
				row = append(row, numeral(float64(n)))
			}
			c.Write(row)
		}
		c.Flush()
		return c.Error()
	})
}

// numeral writes a number so that reading gives the same one, and nothing for an
// undefined one.
func numeral(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func writeFile(file string, write func(io.Writer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
