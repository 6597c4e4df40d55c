package vkomp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	// validatorName is the program of Khronos' SPIRV-Tools that checks modules.
	validatorName = "spirv-val"
	// validatorTime limits one run, which takes milliseconds even for large modules.
	validatorTime = 30 * time.Second
	// validatorText limits the output that is kept, in bytes.
	validatorText = 4096
)

// validator runs the checks of Options.Validate.
type validator struct {
	// path is the path of the program.
	path string
	time time.Duration
}

// findValidator searches for the program in the PATH.
func findValidator() (*validator, error) {
	path, err := exec.LookPath(validatorName)
	if err != nil {
		return nil, fmt.Errorf("%w: Options.Validate needs the program %s of SPIRV-Tools: %w", ErrUnsupported, validatorName, err)
	}
	return &validator{path: path, time: validatorTime}, nil
}

// check runs the program on a module. Its error contains the program's output.
func (v *validator) check(name string, module []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), v.time)
	defer cancel()
	// Devices are opened with scalar block layout if they support it.
	command := exec.CommandContext(ctx, v.path, "--target-env", "vulkan1.3", "--scalar-block-layout", "-")
	var said firstBytes
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(module), &said, &said
	command.WaitDelay = time.Second
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("kernel %q: %s has not ended after %v", name, v.path, v.time)
	case errors.As(err, &exit) && exit.Exited():
		return fmt.Errorf("%w: kernel %q: %s: %s", ErrInvalidModule, name, validatorName, strings.TrimSpace(string(said)))
	}
	return fmt.Errorf("kernel %q: %s: %w", name, v.path, err)
}

// firstBytes keeps the first validatorText bytes that are written to it.
type firstBytes []byte

// Write implements io.Writer.
func (b *firstBytes) Write(p []byte) (int, error) {
	*b = append(*b, p[:min(len(p), validatorText-len(*b))]...)
	return len(p), nil
}
