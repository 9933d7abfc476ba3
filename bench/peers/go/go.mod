// SPDX-License-Identifier: MIT
module yard

go 1.21
