package spirv

import (
	"encoding/binary"
	"fmt"
)

const (
	magic       = 0x07230203
	headerWords = 5
)

// decodeWords converts a module's bytes to words in native byte order. The magic number
// determines the byte order of the module.
func decodeWords(code []byte) ([]uint32, error) {
	if len(code) < 4*headerWords {
		return nil, headerError(len(code)/4, "truncated: %d bytes of %d", len(code), 4*headerWords)
	}
	var order binary.ByteOrder
	switch {
	case binary.LittleEndian.Uint32(code) == magic:
		order = binary.LittleEndian
	case binary.BigEndian.Uint32(code) == magic:
		order = binary.BigEndian
	default:
		return nil, headerError(0, "magic number is %#08x, not %#08x", binary.LittleEndian.Uint32(code), uint32(magic))
	}
	if len(code)%4 != 0 {
		return nil, headerError(len(code)/4, "%d bytes are no whole number of words", len(code))
	}
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = order.Uint32(code[4*i:])
	}
	return words, nil
}

func checkHeader(words []uint32) error {
	version, bound, schema := words[1], words[3], words[4]
	switch {
	case version>>16 != 1 || version&0xff != 0:
		return headerError(1, "version word %#08x is not one of SPIR-V 1", version)
	case bound == 0 || bound > maxBound:
		return headerError(3, "bound on ids is %d, outside 1 to %d", bound, maxBound)
	case schema != 0:
		return headerError(4, "reserved word is %#x, not 0", schema)
	}
	return nil
}

// instruction is one instruction inside a module's words.
type instruction struct {
	opcode   uint16
	word     int      // offset of its first word
	operands []uint32 // shares memory with the module
}

func (in instruction) next() int { return in.word + 1 + len(in.operands) }

func (in instruction) errorf(format string, args ...any) error {
	return &Error{Word: in.word, Op: operationName(in.opcode), Msg: fmt.Sprintf(format, args...)}
}

// decodeInstruction decodes the instruction at an offset in words.
func decodeInstruction(words []uint32, word int) (instruction, error) {
	in := instruction{opcode: uint16(words[word]), word: word}
	count := int(words[word] >> 16)
	switch {
	case count == 0:
		return in, in.errorf("word count is zero")
	case count > len(words)-word:
		return in, in.errorf("truncated: %d words of %d", len(words)-word, count)
	}
	in.operands = words[word+1 : word+count : word+count]
	return in, nil
}

// literalString decodes a string literal: UTF-8, four bytes in each word beginning with the
// low one, terminated by a zero byte. It is empty if it is not terminated.
func literalString(operands []uint32) string {
	words := literalStringWords(operands)
	text := make([]byte, 0, 4*words)
	for _, w := range operands[:words] {
		text = binary.LittleEndian.AppendUint32(text, w)
	}
	for i, b := range text {
		if b == 0 {
			text = text[:i]
			break
		}
	}
	return string(text)
}

// stringLiteral encodes a string literal.
func stringLiteral(s string) []uint32 {
	words := make([]uint32, len(s)/4+1)
	for i := range len(s) {
		words[i/4] |= uint32(s[i]) << (8 * (i % 4))
	}
	return words
}

func literalStringWords(operands []uint32) int {
	for i, w := range operands {
		if w&0xff == 0 || w&0xff00 == 0 || w&0xff0000 == 0 || w&0xff000000 == 0 {
			return i + 1
		}
	}
	return 0
}
