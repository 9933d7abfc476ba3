%% SPDX-License-Identifier: MIT

%% The yardstick on Erlang/OTP.
%%
%%     erl +S workers:workers ... -run yard main <workload> [key=value ...]
%%
%% WORKLOADS.md says what each workload is. Workers are schedulers (+S), set by the caller. There is
%% neither a bounded channel nor a mutex in Erlang, hence no W4 and no W9.
-module(yard).
-export([main/1, ring_actor/2, sky/3, fib_child/2]).

now_ns() -> erlang:monotonic_time(nanosecond).

arg(K, Def) ->
    case get(K) of
        undefined -> Def;
        V -> list_to_integer(V)
    end.

proc_kb(Key) ->
    {ok, B} = file:read_file("/proc/self/status"),
    {match, [N]} = re:run(B, Key ++ ":\\s+(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(N).

report(N, Ns, Extra) ->
    io:format("{\"peer\":\"erlang\",\"workload\":\"~s\",\"workers\":~b,\"n\":~b,"
              "\"ns_per_op\":~.2f,\"ops_per_s\":~b,\"rss_kb\":~b,"
              "\"version\":\"OTP ~s ~s\"~s}~n",
              [get(workload), erlang:system_info(schedulers_online), N, float(Ns),
               round(1.0e9 / Ns), proc_kb("VmHWM"), erlang:system_info(otp_release),
               erlang:system_info(emu_flavor), Extra]).

f(Fmt, Args) -> io_lib:format(Fmt, Args).

check(true, _) -> ok;
check(_, What) ->
    io:format(standard_error, "erlang: wrong result in ~s~n", [What]),
    halt(4).

main([W | Args]) ->
    Self = self(),
    %% one process of its own does the work, not the -run process
    spawn(fun() ->
        process_flag(message_queue_data, off_heap),
        put(workload, W),
        lists:foreach(fun(A) ->
            case string:split(A, "=") of
                [K, V] -> put(list_to_atom(K), V);
                _ -> ok
            end
        end, Args),
        try run(list_to_atom(W)) of
            ok -> halt(0);
            none -> io:format(standard_error, "erlang: no workload ~s~n", [W]), halt(3)
        catch C:E:S ->
            io:format(standard_error, "~p~n", [{C, E, S}]), halt(4)
        end,
        Self ! done
    end),
    receive done -> ok end.

times(0, _) -> ok;
times(N, F) -> F(), times(N - 1, F).

%% wait for N messages equal to M
collect(0, _) -> ok;
collect(N, M) -> receive M -> collect(N - 1, M) end.

run(spawn_join) ->
    N = arg(n, 1000000), B = arg(batch, 1000), P = self(),
    T0 = now_ns(),
    times(N div B, fun() ->
        times(B, fun() -> spawn(fun() -> P ! d end) end),
        collect(B, d)
    end),
    report(N, (now_ns() - T0) / N, ""), ok;
run(yield) ->
    N = arg(n, 4000000), T = arg(tasks, 2), Per = N div T, P = self(),
    T0 = now_ns(),
    times(T, fun() -> spawn(fun() -> yield_loop(Per), P ! d end) end),
    collect(T, d),
    report(N, (now_ns() - T0) / (Per * T), ""), ok;
run(pingpong) -> pp(arg(n, 1000000), 1);
run(actor_pingpong) -> pp(arg(n, 1000000) div 2, 2);
run(mem) ->
    N = arg(n, 100000),
    Kind = case get(kind) of undefined -> "sleep"; K -> K end,
    erlang:garbage_collect(),
    B0 = proc_kb("VmRSS"),
    C = counters:new(1, [atomics]),
    T0 = now_ns(),
    F = case Kind of
        "sleep" -> fun() -> counters:add(C, 1, 1), receive after 120000 -> ok end end;
        _ -> fun() -> counters:add(C, 1, 1), receive stop -> ok end end
    end,
    times(N, fun() -> spawn(F) end),
    wait_count(C, N),
    T1 = now_ns(),
    timer:sleep(300),
    B1 = proc_kb("VmRSS"),
    report(N, (T1 - T0) / N, f(",\"kind\":\"~s\",\"bytes_per_task\":~b",
                               [Kind, (B1 - B0) * 1024 div N])), ok;
run(skynet) ->
    N = arg(n, 1000000), P = self(),
    T0 = now_ns(),
    spawn(?MODULE, sky, [P, 0, N]),
    S = receive {s, X} -> X end,
    T1 = now_ns(),
    check(S =:= N * (N - 1) div 2, "skynet"),
    report(N, (T1 - T0) / N, f(",\"ms\":~.1f,\"result\":~b", [(T1 - T0) / 1.0e6, S])), ok;
run(fib) ->
    N = arg(n, 30),
    T0 = now_ns(),
    R = fib(N),
    T1 = now_ns(),
    check(R =:= fib_plain(N), "fib"),
    S = fib_plain(N + 1) - 1,
    report(S, (T1 - T0) / S, f(",\"ms\":~.1f,\"result\":~b", [(T1 - T0) / 1.0e6, R])), ok;
run(timer_cancel) ->
    N = arg(n, 1000000), P = self(),
    rand:seed(exsss, 1),
    Ds = [rand:uniform(10000) || _ <- lists:seq(1, N)],
    erlang:garbage_collect(),
    T0 = now_ns(),
    Rs = [erlang:start_timer(D, P, t) || D <- Ds],
    T1 = now_ns(),
    Late = lists:foldl(fun(R, A) ->
        case erlang:cancel_timer(R) of false -> A + 1; _ -> A end
    end, 0, Rs),
    T2 = now_ns(),
    report(N, (T2 - T0) / N, f(",\"schedule_ns\":~.1f,\"cancel_ns\":~.1f,\"fired\":~b",
                               [(T1 - T0) / N, (T2 - T1) / N, Late])), ok;
run(timer_sleep) ->
    T = arg(tasks, 100000), R = arg(rounds, 100), Ms = arg(ms, 1), Warm = arg(warm_ms, 2000),
    P = self(),
    A = atomics:new(T * R, [{signed, false}]),
    T0 = now_ns() + Warm * 1000000,
    lists:foreach(fun(I) ->
        spawn(fun() ->
            receive after max(0, (T0 - now_ns()) div 1000000) -> ok end,
            sleeper(A, I * R, R, Ms), P ! d
        end)
    end, lists:seq(0, T - 1)),
    collect(T, d),
    T1 = now_ns(),
    N = T * R,
    report(N, (T1 - T0) / N, [f(",\"tasks\":~b,\"rounds\":~b", [T, R]), percentiles(A, N)]), ok;
run(actor_ring) ->
    N = arg(n, 1000000), K = arg(actors, 503), P = self(),
    Last = spawn(?MODULE, ring_actor, [P, undefined]),
    First = lists:foldl(fun(_, Next) -> spawn(?MODULE, ring_actor, [P, Next]) end,
                        Last, lists:seq(2, K)),
    Last ! {next, First},
    T0 = now_ns(),
    First ! N,
    receive d -> ok end,
    report(N, (now_ns() - T0) / N, ""), ok;
run(actor_spawn) ->
    N = arg(n, 1000000), P = self(),
    erlang:garbage_collect(),
    B0 = proc_kb("VmRSS"),
    T0 = now_ns(),
    F = fun() -> receive {m, V} -> P ! {r, V + 1} end end,
    Pids = [spawn(F) || _ <- lists:seq(1, N)],
    T1 = now_ns(),
    B1 = proc_kb("VmRSS"),
    T2 = now_ns(),
    spawn(fun() -> send_all(Pids, 0) end),
    S = sum_replies(N, 0),
    T3 = now_ns(),
    check(S =:= N * (N - 1) div 2 + N, "actor_spawn"),
    report(N, (T1 - T0 + T3 - T2) / N,
           f(",\"spawn_ns\":~.1f,\"message_ns\":~.1f,\"bytes_per_actor\":~b,\"result\":~b",
             [(T1 - T0) / N, (T3 - T2) / N, (B1 - B0) * 1024 div N, S])), ok;
run(actor_fanin) ->
    N = arg(n, 4000000), K = arg(senders, 8), Per = N div K, P = self(),
    T0 = now_ns(),
    Sink = spawn(fun() -> collect(Per * K, 1), P ! d end),
    times(K, fun() -> spawn(fun() -> send_n(Sink, Per) end) end),
    receive d -> ok end,
    report(N, (now_ns() - T0) / N, ""), ok;
run(wake) ->
    N = arg(n, 2000), Gap = arg(gap_us, 200) * 1000,
    A = atomics:new(1, []),
    B = spawn(fun() -> wake_peer(A) end),
    timer:sleep(10),
    L = wake_loop(N, Gap, A, B, []),
    S = list_to_tuple(lists:sort(L)),
    At = fun(Q) -> element(min(N, trunc(N * Q) + 1), S) end,
    report(N, max(1, At(0.5)), f(",\"p50_ns\":~b,\"p99_ns\":~b,\"p999_ns\":~b",
                        [At(0.5), At(0.99), At(0.999)])), ok;
run(_) -> none.

yield_loop(0) -> ok;
yield_loop(N) -> erlang:yield(), yield_loop(N - 1).

pp(N, Div) ->
    P = self(),
    T0 = now_ns(),
    B = spawn(fun() -> pong(N) end),
    spawn(fun() -> P ! {d, ping(N, B, 0)} end),
    R = receive {d, V} -> V end,
    T1 = now_ns(),
    check(R =:= N, "pingpong"),
    report(N * Div, (T1 - T0) / (N * Div), f(",\"result\":~b", [R])), ok.

ping(0, _, V) -> V;
ping(N, B, V) -> B ! {self(), V}, receive X -> ping(N - 1, B, X) end.

pong(0) -> ok;
pong(N) -> receive {P, V} -> P ! V + 1 end, pong(N - 1).

wait_count(C, N) ->
    case counters:get(C, 1) of
        N -> ok;
        _ -> timer:sleep(1), wait_count(C, N)
    end.

sky(Out, Num, 1) -> Out ! {s, Num};
sky(Out, Num, Size) ->
    Sub = Size div 10, Me = self(),
    sky_spawn(10, Me, Num, Sub),
    Out ! {s, sky_sum(10, 0)}.

sky_spawn(0, _, _, _) -> ok;
sky_spawn(K, Me, Num, Sub) ->
    spawn(?MODULE, sky, [Me, Num + (K - 1) * Sub, Sub]),
    sky_spawn(K - 1, Me, Num, Sub).

sky_sum(0, S) -> S;
sky_sum(K, S) -> receive {s, X} -> sky_sum(K - 1, S + X) end.

fib(N) when N < 2 -> N;
fib(N) ->
    Pid = spawn(?MODULE, fib_child, [self(), N - 1]),
    B = fib(N - 2),
    receive {Pid, A} -> A + B end.

fib_child(P, N) -> P ! {self(), fib(N)}.

fib_plain(N) when N < 2 -> N;
fib_plain(N) -> fib_plain(N - 1) + fib_plain(N - 2).

sleeper(_, _, 0, _) -> ok;
sleeper(A, Base, R, Ms) ->
    T = now_ns(),
    receive after Ms -> ok end,
    atomics:put(A, Base + R, max(0, now_ns() - T - Ms * 1000000)),
    sleeper(A, Base, R - 1, Ms).

%% 1 us buckets up to 5 s, counted in an atomics array (sorting a 10M list is slow)
percentiles(A, N) ->
    K = 5000000,
    H = counters:new(K + 1, [atomics]),
    hist(A, H, K, N),
    f(",\"p50_ns\":~b,\"p99_ns\":~b,\"p999_ns\":~b",
      [rank(H, 1, N * 50 div 100), rank(H, 1, N * 99 div 100), rank(H, 1, N * 999 div 1000)]).

hist(_, _, _, 0) -> ok;
hist(A, H, K, I) ->
    counters:add(H, min(K, atomics:get(A, I) div 1000) + 1, 1),
    hist(A, H, K, I - 1).

rank(H, I, Left) ->
    C = counters:get(H, I),
    if C > Left -> (I - 1) * 1000 + 500;
       true -> rank(H, I + 1, Left - C)
    end.

ring_actor(P, undefined) -> receive {next, X} -> ring_actor(P, X) end;
ring_actor(P, Next) ->
    receive
        0 -> P ! d;
        K -> Next ! K - 1, ring_actor(P, Next)
    end.

send_all([], _) -> ok;
send_all([H | T], I) -> H ! {m, I}, send_all(T, I + 1).

sum_replies(0, S) -> S;
sum_replies(N, S) -> receive {r, V} -> sum_replies(N - 1, S + V) end.

send_n(_, 0) -> ok;
send_n(P, N) -> P ! 1, send_n(P, N - 1).

wake_peer(A) ->
    receive w -> atomics:put(A, 1, now_ns()) end,
    wake_peer(A).

spin_until(T) ->
    case now_ns() < T of true -> spin_until(T); false -> ok end.

spin_stamp(A) ->
    case atomics:get(A, 1) of 0 -> spin_stamp(A); T -> T end.

wake_loop(0, _, _, _, L) -> L;
wake_loop(N, Gap, A, B, L) ->
    spin_until(now_ns() + Gap),
    atomics:put(A, 1, 0),
    T0 = now_ns(),
    B ! w,
    T1 = spin_stamp(A),
    wake_loop(N - 1, Gap, A, B, [max(0, T1 - T0) | L]).
