# SPDX-License-Identifier: MIT
cc -I/Users/me/include
log=/tmp/log
get https://registry.example/thing
