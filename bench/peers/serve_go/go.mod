// SPDX-License-Identifier: MIT
module serve_go

go 1.21
