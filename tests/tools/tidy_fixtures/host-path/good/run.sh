# SPDX-License-Identifier: MIT
log=${TMPDIR:-/tmp}/log
cd "$here/work/x"
mktemp -d /tmp/x.XXXXXX
