#version 450
#extension GL_KHR_memory_scope_semantics : require
// One binding for each way to use a buffer. Binding 9 is declared and unused.
layout(local_size_x = 8, local_size_y = 4, local_size_z = 2) in;
layout(binding = 0) buffer Read { uint read[]; };
layout(binding = 1) buffer Write { uint write[]; };
layout(binding = 2) buffer Atomic { uint atomic[]; };
layout(binding = 3) readonly buffer DeclaredRead { uint declaredRead[]; };
layout(binding = 4) writeonly buffer DeclaredWrite { uint declaredWrite[]; };
layout(binding = 5) buffer LengthOnly { uint lengthOnly[]; };
layout(binding = 6) buffer Mixed { readonly uint head; uint tail[]; } mixed;
layout(binding = 7) buffer AtomicLoadOnly { uint loaded; };
layout(binding = 8) buffer AtomicStoreOnly { uint stored; };
layout(binding = 9) buffer Unused { uint unused[]; };

uint twice(uint v) { return 2 * v; }

void main() {
    uint i = gl_LocalInvocationIndex;
    write[i] = twice(read[i]) + declaredRead[i];
    declaredWrite[i] = uint(lengthOnly.length());
    atomicAdd(atomic[i], mixed.head);
    mixed.tail[i] += atomicLoad(loaded, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
    atomicStore(stored, i, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
}
