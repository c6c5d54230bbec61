package fetch

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// unpack writes the file inside a .gz to a temporary file next to it, and returns this file and its digest.
func (c *Cache) unpack(packed string) (to *os.File, digest string, err error) {
	f, err := os.Open(packed)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, "", fmt.Errorf("it is no .gz file: %w", err)
	}
	if to, err = os.CreateTemp(filepath.Dir(packed), ".new-*"); err != nil {
		return nil, "", err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, h), io.LimitReader(z, c.most+1))
	if err == nil && n > c.most {
		err = c.tooLarge()
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("unpacking: %w", err), to.Close(), os.Remove(to.Name()))
	}
	return to, hex.EncodeToString(h.Sum(nil)), nil
}
