//go:build !invariants && !delays

package lockrank

import "sync"

// Mutex is a sync.Mutex of rank R.
type Mutex[R any] = sync.Mutex

// RWMutex is a sync.RWMutex of rank R.
type RWMutex[R any] = sync.RWMutex
