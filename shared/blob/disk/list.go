package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ferry/shared/blob"
)

// List implements blob.Store.
func (s *Store) List(
	ctx context.Context,
	area blob.Area,
	after string,
	limit int,
) ([]blob.Object, error) {
	if err := checkArea(area); err != nil {
		return nil, err
	}
	if err := blob.CheckLimit(limit); err != nil {
		return nil, err
	}
	files, err := s.listFiles(ctx, area, after, limit)
	if err != nil {
		return nil, err
	}
	small, err := s.small.List(ctx, area, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", area, err)
	}
	all := append(files, small...)
	slices.SortFunc(all, func(a, b blob.Object) int { return cmp.Compare(a.Key, b.Key) })
	return all[:min(len(all), limit)], nil
}

// listFiles reads the names of the folders, and then those of one folder's files at a time.
func (s *Store) listFiles(
	ctx context.Context,
	area blob.Area,
	after string,
	limit int,
) ([]blob.Object, error) {
	folders, err := os.ReadDir(s.folder(area))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", area, err)
	}
	// Keys are compared, and "a-b/x" sorts before "a/x".
	slices.SortFunc(folders, func(a, b fs.DirEntry) int {
		return cmp.Compare(a.Name()+"/", b.Name()+"/")
	})
	var objects []blob.Object
	for _, entry := range folders {
		folder := entry.Name()
		if prefix := folder + "/"; prefix < after && !strings.HasPrefix(after, prefix) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		more, err := s.listFolder(area, folder, after, limit-len(objects))
		if err != nil {
			return nil, fmt.Errorf("listing %s/%s: %w", area, folder, err)
		}
		objects = append(objects, more...)
		if len(objects) == limit {
			break
		}
	}
	return objects, ctx.Err()
}

// listFolder skips what is not an object, such as a file that the operating
// system left among the folders, and what has been deleted meanwhile.
func (s *Store) listFolder(
	area blob.Area,
	folder, after string,
	limit int,
) ([]blob.Object, error) {
	entries, err := os.ReadDir(filepath.Join(s.folder(area), folder)) // sorted
	// A sweep may just have removed the folder, as it was empty.
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var objects []blob.Object
	for _, e := range entries {
		key := folder + "/" + e.Name()
		if key <= after || blob.CheckKey(key) != nil {
			continue
		}
		if len(objects) == limit {
			break
		}
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case info.Mode().IsRegular():
			objects = append(objects, blob.Object{
				Key:      key,
				Size:     info.Size(),
				Modified: info.ModTime(),
			})
		}
	}
	return objects, nil
}
