/* SPDX-License-Identifier: MIT */
#ifdef __wasm__
#endif
