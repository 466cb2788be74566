"""Runs one CUDA kernel, for --self-check: c[i] = i + 1 on 256 elements, through the driver alone (no toolkit, no torch).

Exit codes: 0 the GPU gave the right answer, 3 there is no driver or no GPU, 4 a call of the driver failed.
"""

from __future__ import annotations

import ctypes
import sys

COUNT = 256
# The oldest PTX that drivers of today still compile, so that one text serves every GPU.
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry self_check(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  add.u32 %r2, %r1, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}
\0"""


class Driver:
    """The CUDA driver's library; every call that fails ends the program with its name and the driver's words."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as exc:
            sys.exit(_say(f"no CUDA driver here ({exc})", 3))

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver."""
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            why = (text.value or b"unknown error").decode()
            sys.exit(_say(f"{name} failed: {why} ({code})", 3 if name in ("cuInit", "cuDeviceGet") else 4))


def _say(text: str, code: int) -> int:
    print(f"one_kernel.py: {text}", file=sys.stderr)
    return code


def main() -> int:
    """Run the kernel on device 0; return the exit code."""
    driver = Driver()
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory, answer = ctypes.c_uint64(), (ctypes.c_uint32 * COUNT)()
    driver.call("cuInit", 0)
    driver.call("cuDeviceGet", ctypes.byref(device), 0)
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    driver.call("cuCtxSetCurrent", context)
    driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, b"self_check")
    driver.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(ctypes.sizeof(answer)))
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(memory), ctypes.c_void_p))
    driver.call("cuLaunchKernel", function, 1, 1, 1, COUNT, 1, 1, 0, None, arguments, None)
    driver.call("cuCtxSynchronize")
    driver.call("cuMemcpyDtoH_v2", answer, memory, ctypes.c_size_t(ctypes.sizeof(answer)))
    driver.call("cuMemFree_v2", memory)
    driver.call("cuDevicePrimaryCtxRelease_v2", device)
    right = list(answer) == [number + 1 for number in range(COUNT)]
    return 0 if right else _say("the GPU's answer is wrong", 4)


if __name__ == "__main__":
    sys.exit(main())
