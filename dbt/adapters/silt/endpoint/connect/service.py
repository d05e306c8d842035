"""The gRPC service of the Connect door: runs commands through the engine, and passes all other calls on.

    server = serve(Door(sessions, token, is_local=True), "127.0.0.1", 15002)
    server.port

The calls of the protocol come from PySpark's own description of it, so that a call of a newer PySpark passes, too.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError
from pyspark.sql.connect.proto import base_pb2 as pb

from dbt.adapters.silt.endpoint.connect import catalog_calls, plans, rules, statements
from dbt.adapters.silt.endpoint.connect.backend import METHODS, Failed, Method, encoded
from dbt.adapters.silt.endpoint.connect.operations import Operation, Work, not_found, of_error
from dbt.adapters.silt.endpoint.connect.sessions import TOKEN, ConnectSession, Door, Key, refused
from dbt.adapters.silt.endpoint.core.operations import limited, too_long
from dbt.adapters.silt.engine import spark_seams
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.ast import ResetSetting, SetSetting, Statement

_MOST_BYTES: Final = 128 * 1024 * 1024
"""The largest message, as at Spark's own server and in PySpark's client."""

_MOST_CALLS: Final = 512
"""The calls at the same time: each waits on a thread of its own."""

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MOST_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.http2.max_ping_strikes", 0),  # PySpark sends a ping a minute; gRPC's servers end such connections by default
    ("grpc.so_reuseport", 0),  # otherwise another program could listen at the same address
)


@dataclass(frozen=True)
class Server:
    """A running service."""

    grpc: grpc.Server
    port: int

    def stop(self) -> None:
        """Ends the service; running calls are cancelled."""
        self.grpc.stop(None).wait()


def serve(door: Door, host: str, port: int, credentials: grpc.ServerCredentials | None = None) -> Server:
    """Starts the service.

    Args:
        port: 0 for a free port.
        credentials: certificate and key for TLS; None only on this machine.

    Raises:
        InvalidSettingError: if the address is in use.
    """
    spark_seams.read_deep_messages()
    pool = ThreadPoolExecutor(_MOST_CALLS, thread_name_prefix="silt-connect")
    server = grpc.server(pool, options=_OPTIONS, maximum_concurrent_rpcs=_MOST_CALLS)
    server.add_generic_rpc_handlers((_Handlers(Service(door)),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        found = (
            server.add_insecure_port(address) if credentials is None else server.add_secure_port(address, credentials)
        )
    except RuntimeError as error:
        raise InvalidSettingError(
            f"the endpoint cannot listen at {address}", remedy="Choose another port: another program uses it"
        ) from error
    server.start()
    return Server(server, found)


def tls_credentials(key: Path, chain: Path) -> grpc.ServerCredentials:
    """Returns the credentials of a server from the files of its key and its certificate chain, in PEM format."""
    return grpc.ssl_server_credentials([(key.read_bytes(), chain.read_bytes())])


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Finds the function for a call."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def service(self, details: Any) -> grpc.RpcMethodHandler | None:
        name = details.method.rpartition("/")[2]
        method = METHODS.get(name)
        if method is None or method.path != details.method:
            return None
        answering = functools.partial(self._service.called, name, method)
        if method.takes_stream:
            return grpc.stream_unary_rpc_method_handler(answering)
        if method.returns_stream:
            return grpc.unary_stream_rpc_method_handler(functools.partial(self._service.streamed, name, method))
        return grpc.unary_unary_rpc_method_handler(answering)


class Service:
    """Answers the calls of clients."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._unary: dict[str, Callable[[Any, Any, grpc.ServicerContext], bytes]] = {
            "AnalyzePlan": self._analyze,
            "Config": self._config,
            "AddArtifacts": self._add_artifacts,
            "Interrupt": self._interrupt,
            "ReleaseExecute": self._release_execute,
            "ReleaseSession": self._release_session,
            "CloneSession": self._clone_session,
            "GetStatus": self._status,
        }

    def called(self, name: str, method: Method, raw: Any, context: grpc.ServicerContext) -> bytes:
        """Answers a call that has one answer."""
        with self._told(context):
            answering = self._unary.get(name)
            if answering is not None:
                return answering(method, raw, context)
            request = _parsed(method, raw)
            return self._session(request, context).backend.pass_on(method, raw, context)
        raise AssertionError

    def streamed(self, name: str, method: Method, raw: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """Answers a call that has a stream of answers."""
        with self._told(context):
            request = _parsed(method, raw)
            if name == "ExecutePlan":
                yield from self._execute(method, request, raw, context)
                return
            known = self._session(request, context, opens=False)
            operation = known.operations.find(request.operation_id)
            if operation is None:
                with known.session.in_use():
                    yield from known.limited.answers(request.operation_id, known.backend.answers(method, raw, context))
            else:
                yield from operation.answers(request.last_response_id)

    @contextlib.contextmanager
    def _told(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Tells the client of the failure of a block."""
        try:
            yield
        except Exception as error:
            told = of_error(error, lambda: self._door.sessions.house.environment.catalog)
            context.set_trailing_metadata(told.trailing)
            context.abort(told.code, told.text)

    def _session(self, request: Any, context: grpc.ServicerContext, opens: bool = True) -> ConnectSession:
        """Returns the session of a request.

        Raises:
            Failed: if the token is missing, or the session is no longer open.
        """
        key = Key.of(request)
        if not self._door.is_allowed(key, context):
            raise refused()
        seen = getattr(request, "client_observed_server_side_session_id", "")
        if not opens and self._door.find(key) is None:
            raise not_found("SESSION_CHANGED", key.session)
        return self._door.open(key, getattr(request, "client_type", ""), seen)

    def _execute(
        self, method: Method, request: pb.ExecutePlanRequest, raw: bytes, context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        known = self._session(request, context)
        opened = plans.opened(request.plan)
        operation = known.operations.find(request.operation_id) or self._started(known, request)
        if operation is None:
            with known.session.in_use():
                passed = _resolved(known, request, request.plan, opened, raw)
                yield from self._passed_on(known, method, request, passed, context)
            return
        yield from operation.answers()
        if not operation.can_reattach:
            operation.release()

    def _passed_on(
        self,
        known: ConnectSession,
        method: Method,
        request: pb.ExecutePlanRequest,
        raw: bytes,
        context: grpc.ServicerContext,
    ) -> Iterator[bytes]:
        """Lets the server run an operation, within the limits."""
        operation_id = request.operation_id or str(uuid.uuid4())
        named = raw if request.operation_id else raw + encoded(pb.ExecutePlanRequest(operation_id=operation_id))
        known.limited.started(operation_id)
        yield from known.limited.answers(operation_id, known.backend.answers(method, named, context))
        if not _can_reattach(request):
            known.limited.ended(operation_id)

    def _started(self, known: ConnectSession, request: pb.ExecutePlanRequest) -> Operation | None:
        """Starts the operation of a request that the engine runs; returns None if the server runs it."""
        work = _work(known, request.plan)
        if work is None:
            return None
        ids = pb.ExecutePlanResponse(
            session_id=request.session_id,
            server_side_session_id=known.backend.server_side_session,
            operation_id=request.operation_id or str(uuid.uuid4()),
        )
        operation = Operation(ids, _can_reattach(request), tuple(request.tags), known.session.progress)
        return known.operations.started(operation, functools.partial(_run, known, request.plan, operation, work))

    def _analyze(self, method: Method, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request = _parsed(method, raw)
        known = self._session(request, context)
        opened = plans.opened(request)
        return known.backend.pass_on(method, _resolved(known, request, request, opened, raw), context)

    def _config(self, method: Method, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request = _parsed(method, raw)
        key = Key.of(request)
        kind = request.operation.WhichOneof("op_type")
        pairs = {each.key: each.value for each in request.operation.set.pairs} if kind == "set" else {}
        if pairs and not self._door.is_allowed(key, context):
            settings = self._door.settings_before(key, pairs)
            if settings is None:
                return encoded(pb.ConfigResponse(session_id=key.session))
            pairs = settings
        known = self._session(request, context)
        pairs.pop(TOKEN, None)
        changes: list[Statement] = [_setting(name, value) for name, value in pairs.items()]
        changes += [ResetSetting(text=f"reset {quote(key)}", key=key) for key in request.operation.unset.keys]
        warnings = []
        with known.session.busy():
            for statement in changes:
                try:
                    known.session.execute(statement.text, statement)
                except errors.SiltError as error:
                    if not request.operation.set.silent:
                        raise
                    warnings.append(str(error))
        del request.operation.set.pairs[:], request.operation.unset.keys[:]
        answer = known.backend.pass_on(method, encoded(request) if changes else raw, context)
        return answer + encoded(pb.ConfigResponse(warnings=warnings))

    def _add_artifacts(self, method: Method, stream: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        first = next(stream, b"")
        known = self._session(_parsed(method, first), context)

        refused_for: list[Exception] = []

        def checked() -> Iterator[bytes]:
            for raw in itertools.chain([first], stream):
                try:
                    _check_artifacts(known, _parsed(method, raw))
                except errors.SiltError as error:
                    refused_for.append(error)
                    raise
                yield raw

        try:
            return known.backend.pass_stream(method, checked(), context)
        except Failed as failure:
            raise (refused_for or [failure])[0] from failure

    def _interrupt(self, method: Method, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request = _parsed(method, raw)
        known = self._session(request, context)
        answer = pb.InterruptResponse.FromString(known.backend.pass_on(method, raw, context))
        for each in known.operations.running():
            if request.operation_id in ("", each.ids.operation_id) and request.operation_tag in ("", *each.tags):
                each.cancel(known.session.interrupt)
                answer.interrupted_ids.append(each.ids.operation_id)
        return encoded(answer)

    def _release_execute(self, method: Method, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request = _parsed(method, raw)
        known = self._session(request, context, opens=False)
        operation = known.operations.find(request.operation_id)
        is_all = request.HasField("release_all")
        if operation is None and is_all:
            known.limited.ended(request.operation_id)
            return known.backend.pass_on(method, raw, context)
        if operation is not None and is_all:
            operation.release()
        # PySpark tells of each answer that it has; Spark need not know: it keeps only the last megabytes it has sent.
        return encoded(
            pb.ReleaseExecuteResponse(
                session_id=request.session_id,
                operation_id=request.operation_id,
                server_side_session_id=known.backend.server_side_session,
            )
        )

    def _release_session(self, method: Method, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request = _parsed(method, raw)
        key = Key.of(request)
        if not self._door.is_allowed(key, context):
            raise refused()
        known = self._door.find(key)
        seen = "" if known is None else known.backend.server_side_session
        self._door.close(key)
        return encoded(pb.ReleaseSessionResponse(session_id=key.session, server_side_session_id=seen))

    def _clone_session(self, method: Method, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request = _parsed(method, raw)
        known = self._session(request, context)
        name, clone = self._door.clone(Key.of(request), known, request.new_session_id)
        return encoded(
            method.response(
                session_id=request.session_id,
                server_side_session_id=known.backend.server_side_session,
                new_session_id=name,
                new_server_side_session_id=clone.backend.server_side_session,
            )
        )

    def _status(self, method: Method, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request = _parsed(method, raw)
        known = self._session(request, context)
        answer = pb.GetStatusResponse.FromString(known.backend.pass_on(method, raw, context))
        own = {each.operation_id: known.operations.find(each.operation_id) for each in answer.operation_statuses}
        for each in answer.operation_statuses:
            operation = own[each.operation_id]
            if operation is not None:
                each.state = getattr(each, f"OPERATION_STATE_{operation.state}")
        return encoded(answer)


def _can_reattach(request: pb.ExecutePlanRequest) -> bool:
    """Returns whether a client asks again for the answers of an operation if its connection is lost."""
    return any(each.reattach_options.reattachable for each in request.request_options)


def _work(known: ConnectSession, plan: pb.Plan) -> Work | None:
    """Returns the function that runs a plan in the engine, or None if the server runs it."""
    if plan.WhichOneof("op_type") == "command":
        return functools.partial(statements.run, known.plans, plan.command) if statements.runs(plan.command) else None
    if plan.root.WhichOneof("rel_type") == "catalog" and catalog_calls.answers(plan.root.catalog):
        return functools.partial(statements.run_call, known.plans, plan.root.catalog)
    found = known.plans.statement(plan)
    return None if found is None else functools.partial(statements.run_text, known.plans, *found)


def _run(known: ConnectSession, plan: pb.Plan, operation: Operation, work: Work) -> list[pb.ExecutePlanResponse]:
    """Runs a statement in the engine.

    Raises:
        Failed: if it fails.
    """
    try:
        rules.check(plan, known.session.warehouse.settings)
        most = known.session.limits.most_seconds
        with (
            known.session.busy(),
            limited(most, lambda: operation.cancel(known.session.interrupt, too_long(most))),
        ):
            return work()
    except Exception as error:
        raise operation.failure(error, lambda: known.session.catalog) from error


def _resolved(known: ConnectSession, request: Any, part: Any, opened: list[pb.Plan], raw: bytes) -> bytes:
    """Checks a plan, resolves its names in place, and returns the bytes of the request.

    Args:
        part: the part of the request that contains the plan.
        opened: the plans in it that were compressed. Spark gets what was checked, not the bytes that came.
        raw: the bytes of the request if nothing was changed.
    """
    rules.check(part, known.session.warehouse.settings)
    try:
        is_other = known.plans.resolve(part)
    except Exception as error:
        raise of_error(error, lambda: known.session.catalog) from error
    plans.close(opened)
    return encoded(request) if is_other or opened else raw


def _check_artifacts(known: ConnectSession, request: Any) -> None:
    names = [each.name for each in request.batch.artifacts]
    names += [request.begin_chunk.name] if request.HasField("begin_chunk") else []
    for name in names:
        rules.check_artifact(name, known.session.warehouse.settings)


def _setting(name: str, value: str) -> SetSetting:
    return SetSetting(text=f"set {quote(name)}={quote(value)}", key=name, value=value)


def _parsed(method: Method, raw: bytes) -> Any:
    try:
        return method.request.FromString(raw)
    except DecodeError as error:
        raise plans.unreadable(str(error)) from error
