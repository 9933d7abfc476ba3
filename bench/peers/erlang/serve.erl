%% SPDX-License-Identifier: MIT

%% The servers of the yardstick on Erlang/OTP: a process per connection, which gets what is read as
%% messages ({active, true} was the fastest of the modes here).
%%
%%     erl +S workers:workers ... -run serve main PORT WORKERS echo|http
-module(serve).
-export([main/1]).

-define(HEAD_MAX, 2048).

main([Port, _Workers, Kind]) ->
    {ok, L} = gen_tcp:listen(list_to_integer(Port),
        [binary, {ip, {127, 0, 0, 1}}, {active, false}, {nodelay, true}, {reuseaddr, true},
         {backlog, 4096}, {packet, raw}]),
    accept(L, Kind).

accept(L, Kind) ->
    {ok, S} = gen_tcp:accept(L),
    Pid = spawn(fun() -> receive go -> ok end, begin_with(S, Kind) end),
    ok = gen_tcp:controlling_process(S, Pid),
    Pid ! go,
    accept(L, Kind).

begin_with(S, Kind) ->
    inet:setopts(S, [{active, true}]),
    case Kind of
        "echo" -> echo(S);
        "http" -> http(S, <<>>, binary:compile_pattern(<<"\r\n\r\n">>))
    end.

echo(S) ->
    receive
        {tcp, S, B} -> gen_tcp:send(S, B), echo(S);
        _ -> gen_tcp:close(S)
    end.

http(S, Part, End) ->
    receive
        {tcp, S, B} ->
            case requests(<<Part/binary, B/binary>>, End, []) of
                {Answers, Rest} when byte_size(Rest) < ?HEAD_MAX ->
                    gen_tcp:send(S, Answers),
                    http(S, Rest, End);
                _ -> gen_tcp:close(S)
            end;
        _ -> gen_tcp:close(S)
    end.

%% The answers to the whole requests, and what is left.
requests(<<"GET ", _/binary>> = B, End, Answers) ->
    case binary:match(B, End) of
        nomatch -> {Answers, B};
        {At, 4} ->
            <<_:(At + 4)/binary, Rest/binary>> = B,
            requests(Rest, End, [answer() | Answers])
    end;
requests(B, _, Answers) when B =:= <<>>; B =:= <<"G">>; B =:= <<"GE">>; B =:= <<"GET">> ->
    {Answers, B};
requests(_, _, _) -> wrong.

answer() ->
    <<"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello">>.
