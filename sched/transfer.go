package sched

import "github.com/vkomp/vkomp/sched/transfer"

// Transfer is a transfer that a construct requests.
type Transfer = transfer.Request

// What a Transfer does.
const (
	CopyToDevice = transfer.CopyToDevice
	CopyToHost   = transfer.CopyToHost
	CopyWithin   = transfer.CopyWithin
	Fill         = transfer.Fill
	UpdateTo     = transfer.UpdateTo
	UpdateFrom   = transfer.UpdateFrom
)
