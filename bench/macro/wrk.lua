-- SPDX-License-Identifier: MIT
-- What wrk has seen, as a line of JSON. One request is in flight on each connection.
done = function(summary, latency, _)
  local e = summary.errors
  io.write(string.format(
    'JSON {"requests":%d,"duration_us":%d,"p50_us":%.1f,"p99_us":%.1f,"errors":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
