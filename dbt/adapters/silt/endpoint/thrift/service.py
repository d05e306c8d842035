"""HiveServer2's service: sessions and statements of clients, by handles that only the client knows."""

from __future__ import annotations

import functools
import json
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import pyspark
from TCLIService import TCLIService, ttypes
from thrift.Thrift import TApplicationException, TMessageType, TType

from dbt.adapters.silt.endpoint.core.answers import Answer, Problem, problem_of
from dbt.adapters.silt.endpoint.core.house import Client
from dbt.adapters.silt.endpoint.core.operations import Operation, State
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.endpoint.core.tokens import Token
from dbt.adapters.silt.endpoint.thrift import metadata
from dbt.adapters.silt.endpoint.thrift.row_sets import row_set, rows_of, table_schema
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, SiltError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote

_logger = logging.getLogger("dbt.adapters.silt.endpoint")
_Response = TypeVar("_Response")

_OLDEST: Final = ttypes.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V6
"""The first version of the protocol with columns instead of rows."""
_NEWEST: Final = ttypes.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V8

TOKEN_SETTING: Final = "silt.token"
"""The session's setting in which a client without a password sends the token."""

WRONG_TOKEN: Final = "the token is wrong or missing: send it as the password"

_MOST_ROWS: Final = 50_000
_POLL_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5
_LOG: Final = 1
_FIRST: Final = ttypes.TFetchOrientation.FETCH_FIRST
_OK: Final = ttypes.TStatus(ttypes.TStatusCode.SUCCESS_STATUS)
_STATES: Final = {
    State.WAITING: ttypes.TOperationState.PENDING_STATE,
    State.RUNNING: ttypes.TOperationState.RUNNING_STATE,
    State.FINISHED: ttypes.TOperationState.FINISHED_STATE,
    State.FAILED: ttypes.TOperationState.ERROR_STATE,
    State.CANCELLED: ttypes.TOperationState.CANCELED_STATE,
}
_PREFIXES: Final = ("set:hiveconf:", "set:hivevar:", "set:system:", "set:")


@dataclass
class _Running:
    """A statement or a metadata call of a session.

    Attributes:
        operation: the statement; None for a metadata call, whose answer is known from the beginning.
        position: the number of rows that were fetched.
    """

    session_id: str
    operation: Operation | None = None
    known: Answer | None = None
    position: int = 0

    def answer(self) -> Answer:
        """Returns the answer; waits for the statement, and raises its error."""
        return self.known if self.known is not None else self._operation.result()

    @property
    def _operation(self) -> Operation:
        assert self.operation is not None
        return self.operation


@dataclass
class Door:
    """The parts of the service that its connections share.

    Attributes:
        unknown: the probes that were logged; each is logged once.
    """

    sessions: Sessions
    token: Token
    running: dict[bytes, _Running] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def warn(self, event: str, **values: str) -> None:
        """Logs a warning as JSON, once for each event and its values."""
        text = json.dumps({"event": event, "door": "thrift", **values}, sort_keys=True)
        with self.lock:
            is_new = text not in self.unknown and len(self.unknown) < 1000
            self.unknown.add(text)
        if is_new:
            _logger.warning("%s", text)

    def forget_ended(self) -> None:
        """Forgets the results of sessions that have expired."""
        with self.lock:
            old = [key for key, each in self.running.items() if each.session_id not in self.sessions]
            for key in old:
                del self.running[key]

    def close_session(self, session_id: str, is_lost: bool = False) -> None:
        """Cancels the statements of a session, and closes it.

        Args:
            is_lost: whether its client has vanished.

        Raises:
            SiltError: if its run could not be published.
        """
        with self.lock:
            keys = [key for key, each in self.running.items() if each.session_id == session_id]
            found = [self.running.pop(key) for key in keys]
        for each in found:
            if each.operation is not None:
                each.operation.cancel()
        if is_lost:
            self.sessions.lose(session_id, "the connection of its client was lost")
        else:
            self.sessions.close(session_id)


def _answered(
    response: Callable[..., _Response],
) -> Callable[[Callable[[Service, Any], Mapping[str, Any] | None]], Callable[[Service, Any], _Response]]:
    """Returns a decorator that makes a call's response of its fields, with the status, or with the error's status."""

    def decorate(call: Callable[[Service, Any], Mapping[str, Any] | None]) -> Callable[[Service, Any], _Response]:
        @functools.wraps(call)
        def run(self: Service, req: Any) -> _Response:
            try:
                if not self.is_known and call.__name__ != "OpenSession":
                    raise InvalidStatementError("the client has not sent the token", remedy="Open a session first")
                return response(**{"status": _OK, **(call(self, req) or {})})
            except Exception as error:
                if not isinstance(error, SiltError):
                    _logger.exception("a call of a client failed")
                return response(status=status_of(self.problem(error)))

        return run

    return decorate


def _refused(response: Callable[..., _Response], what: str) -> Callable[[Service, Any], _Response]:
    """Returns a call that the endpoint does not answer."""

    def call(self: Service, req: Any) -> None:  # noqa: ARG001
        raise UnsupportedStatementError(f"the endpoint has no {what}", remedy="Leave the call out")

    return _answered(response)(call)


def status_of(problem: Problem) -> ttypes.TStatus:
    """Returns the status of a failed call."""
    return ttypes.TStatus(
        ttypes.TStatusCode.ERROR_STATUS,
        infoMessages=[problem.condition] if problem.condition else None,
        sqlState=problem.state,
        errorCode=0,
        errorMessage=problem.message,
    )


class Service:
    """The service for one connection.

    Args:
        door: the shared parts.
        user: the user that the connection names; None if it knows no token yet, and must send it with OpenSession.
        is_gone: returns whether the client has closed the connection.
        keeps_sessions: whether sessions outlive the connection, as with HTTP.
    """

    def __init__(
        self, door: Door, user: str | None, is_gone: Callable[[], bool] = lambda: False, keeps_sessions: bool = False
    ) -> None:
        self.door, self.user, self.is_known = door, user, user is not None
        self._is_gone, self._keeps_sessions = is_gone, keeps_sessions
        self._own: list[str] = []

    def end(self) -> None:
        """Closes the sessions of this connection, unless they outlive it."""
        for each in () if self._keeps_sessions else self._own:
            self.door.close_session(each, is_lost=True)

    def problem(self, error: Exception) -> Problem:
        """Describes an error for the client."""
        return problem_of(error, lambda: self.door.sessions.house.environment.catalog)

    # Sessions

    @_answered(ttypes.TOpenSessionResp)
    def OpenSession(self, req: Any) -> Mapping[str, Any]:
        given = dict(req.configuration or {})
        token = given.pop(TOKEN_SETTING, None) or req.password
        if not self.is_known and not self.door.token.matches(token):
            self.door.warn("wrong_token", how="session")
            raise InvalidStatementError(WRONG_TOKEN, remedy="`silt endpoint` prints the place of the token")
        if req.client_protocol < _OLDEST:
            raise UnsupportedStatementError(
                f"the client speaks version {req.client_protocol + 1} of HiveServer2's protocol, which has no columns",
                remedy=f"Use a driver of Hive 0.14 or later, which speaks version {_OLDEST + 1}",
            )
        self.is_known = True
        database, settings = self._settings(given)
        session = self.door.sessions.open(Client(req.username or self.user or "", "thrift"), settings)
        self._own.append(session.id)
        if database:
            session.run(f"use {quote(database)}")
        return {
            "serverProtocolVersion": min(req.client_protocol, _NEWEST),
            "sessionHandle": ttypes.TSessionHandle(_identifier(bytes.fromhex(session.id))),
            "configuration": {},
        }

    def _settings(self, given: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
        """Returns the schema to begin in, and the settings of Spark and of this package; others are only logged."""
        database, settings = None, {}
        for name, value in given.items():
            key = next((name.removeprefix(each) for each in _PREFIXES if name.startswith(each)), name)
            if key == "use:database":
                database = value
            elif key.startswith(("silt.", "spark.")):
                settings[key] = value
            else:
                self.door.warn("unknown_setting", name=key[:200])
        return database, settings

    @_answered(ttypes.TCloseSessionResp)
    def CloseSession(self, req: Any) -> None:
        self.door.close_session(req.sessionHandle.sessionId.guid.hex())  # a session may have expired

    def _session(self, req: Any) -> Session:
        return self.door.sessions.get(req.sessionHandle.sessionId.guid.hex())

    # Statements

    @_answered(ttypes.TExecuteStatementResp)
    def ExecuteStatement(self, req: Any) -> Mapping[str, Any]:
        session = self._session(req)
        operation = Operation(session, req.statement)
        handle = self._handle(_Running(session.id, operation), ttypes.TOperationType.EXECUTE_STATEMENT)
        if req.runAsync:
            return {"operationHandle": handle}
        while not operation.wait(_LOOK_SECONDS):
            if self._is_gone():
                operation.cancel()
        try:
            answer = operation.result()
        except SiltError:
            self._forget(handle)
            raise
        handle.hasResultSet = bool(answer.columns)
        handle.modifiedRowCount = answer.rows_affected
        return {"operationHandle": handle}

    @_answered(ttypes.TGetOperationStatusResp)
    def GetOperationStatus(self, req: Any) -> Mapping[str, Any]:
        found = self._running(req)
        operation = found.operation
        if operation is None:
            return {"operationState": ttypes.TOperationState.FINISHED_STATE, "hasResultSet": True}
        operation.wait(_POLL_SECONDS)
        times = {"operationStarted": int(operation.started * 1000), "operationCompleted": int(operation.ended * 1000)}
        shown: dict[str, Any] = {"operationState": _STATES[operation.state], **times}
        if operation.state is State.FINISHED:
            return {**shown, "hasResultSet": bool(found.answer().columns)}
        if operation.state in (State.FAILED, State.CANCELLED):
            assert operation.error is not None
            problem = self.problem(operation.error)
            shown |= {"sqlState": problem.state, "errorCode": 0, "errorMessage": problem.message}
        elif req.getProgressUpdate:
            shown["progressUpdateResponse"] = _progress(operation)
        return shown

    @_answered(ttypes.TCancelOperationResp)
    def CancelOperation(self, req: Any) -> None:
        operation = self._running(req).operation
        if operation is not None:
            operation.cancel()

    @_answered(ttypes.TCloseOperationResp)
    def CloseOperation(self, req: Any) -> None:
        operation = self._running(req).operation
        if operation is not None:
            operation.cancel()
        self._forget(req.operationHandle)

    @_answered(ttypes.TGetResultSetMetadataResp)
    def GetResultSetMetadata(self, req: Any) -> Mapping[str, Any]:
        return {"schema": table_schema(self._running(req).answer().columns)}

    @_answered(ttypes.TFetchResultsResp)
    def FetchResults(self, req: Any) -> Mapping[str, Any]:
        found = self._running(req)
        if req.fetchType == _LOG:
            return {"hasMoreRows": False, "results": ttypes.TRowSet(0, [], [_NO_LOG])}
        answer = found.answer()
        start = 0 if req.orientation == _FIRST else found.position
        most = _MOST_ROWS if not req.maxRows or req.maxRows < 0 else min(req.maxRows, _MOST_ROWS)
        page = row_set(answer.columns, answer.rows, start, most)
        found.position = start + rows_of(page)
        return {"hasMoreRows": False, "results": page}

    def _handle(self, running: _Running, kind: int) -> ttypes.TOperationHandle:
        guid = secrets.token_bytes(16)
        with self.door.lock:
            self.door.running[guid] = running
        return ttypes.TOperationHandle(_identifier(guid), kind, hasResultSet=True)

    def _running(self, req: Any) -> _Running:
        found = self.door.running.get(req.operationHandle.operationId.guid)
        if found is None:
            raise InvalidStatementError("the operation does not exist: it was closed", remedy="Run the statement again")
        self.door.sessions.get(found.session_id)
        return found

    def _forget(self, handle: ttypes.TOperationHandle) -> None:
        with self.door.lock:
            self.door.running.pop(handle.operationId.guid, None)

    # Metadata

    def _metadata(self, req: Any, kind: int, answer: Answer) -> Mapping[str, Any]:
        return {"operationHandle": self._handle(_Running(self._session(req).id, known=answer), kind)}

    @_answered(ttypes.TGetCatalogsResp)
    def GetCatalogs(self, req: Any) -> Mapping[str, Any]:
        return self._metadata(req, ttypes.TOperationType.GET_CATALOGS, metadata.catalogs(self._session(req)))

    @_answered(ttypes.TGetSchemasResp)
    def GetSchemas(self, req: Any) -> Mapping[str, Any]:
        found = metadata.schemas(self._session(req), req.catalogName, req.schemaName)
        return self._metadata(req, ttypes.TOperationType.GET_SCHEMAS, found)

    @_answered(ttypes.TGetTablesResp)
    def GetTables(self, req: Any) -> Mapping[str, Any]:
        given = (req.catalogName, req.schemaName, req.tableName, req.tableTypes)
        return self._metadata(req, ttypes.TOperationType.GET_TABLES, metadata.tables(self._session(req), *given))

    @_answered(ttypes.TGetColumnsResp)
    def GetColumns(self, req: Any) -> Mapping[str, Any]:
        given = (req.catalogName, req.schemaName, req.tableName, req.columnName)
        return self._metadata(req, ttypes.TOperationType.GET_COLUMNS, metadata.columns(self._session(req), *given))

    @_answered(ttypes.TGetTableTypesResp)
    def GetTableTypes(self, req: Any) -> Mapping[str, Any]:
        return self._metadata(req, ttypes.TOperationType.GET_TABLE_TYPES, metadata.table_types())

    @_answered(ttypes.TGetTypeInfoResp)
    def GetTypeInfo(self, req: Any) -> Mapping[str, Any]:
        return self._metadata(req, ttypes.TOperationType.GET_TYPE_INFO, metadata.type_info())

    @_answered(ttypes.TGetFunctionsResp)
    def GetFunctions(self, req: Any) -> Mapping[str, Any]:
        found = metadata.functions(self._session(req), req.catalogName, req.schemaName, req.functionName)
        return self._metadata(req, ttypes.TOperationType.GET_FUNCTIONS, found)

    @_answered(ttypes.TGetInfoResp)
    def GetInfo(self, req: Any) -> Mapping[str, Any]:
        self._session(req)
        kinds = ttypes.TGetInfoType
        known = {kinds.CLI_SERVER_NAME: "Spark SQL", kinds.CLI_DBMS_NAME: "Spark SQL"}
        value = {**known, kinds.CLI_DBMS_VER: pyspark.__version__}.get(req.infoType)
        if value is None:
            self.door.warn("unknown_info", number=str(req.infoType))
            raise UnsupportedStatementError(f"the information {req.infoType} is not known", remedy="Do not ask for it")
        return {"infoValue": ttypes.TGetInfoValue(stringValue=value)}

    GetPrimaryKeys = _refused(ttypes.TGetPrimaryKeysResp, "primary keys")
    GetCrossReference = _refused(ttypes.TGetCrossReferenceResp, "foreign keys")
    GetDelegationToken = _refused(ttypes.TGetDelegationTokenResp, "delegation tokens")
    CancelDelegationToken = _refused(ttypes.TCancelDelegationTokenResp, "delegation tokens")
    RenewDelegationToken = _refused(ttypes.TRenewDelegationTokenResp, "delegation tokens")


_NO_LOG: Final = ttypes.TColumn(stringVal=ttypes.TStringColumn([], b""))


_PROGRESS: Final = ["TASKS", "DONE", "BYTES READ"]


def _progress(operation: Operation) -> ttypes.TProgressUpdateResp:
    """Returns the progress of a statement that has not ended."""
    stages = operation.session.progress()
    return ttypes.TProgressUpdateResp(
        headerNames=_PROGRESS,
        rows=[[str(stages.tasks), str(stages.tasks_done), str(stages.size)]],
        progressedPercentage=stages.tasks_done / stages.tasks if stages.tasks else 0.0,
        status=ttypes.TJobExecutionStatus.IN_PROGRESS,
        footerSummary="",
        startTime=int(operation.started * 1000),
    )


def _identifier(guid: bytes) -> ttypes.THandleIdentifier:
    return ttypes.THandleIdentifier(guid, guid)


class Calls(TCLIService.Processor):  # type: ignore[misc]
    """Reads a call, lets the service of the connection answer it, and logs calls that the service does not know."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._service = service

    def process(self, iprot: Any, oprot: Any) -> None:
        """Answers one call.

        Raises:
            TException, and other errors: if the bytes are not a call.
        """
        name, _, number = iprot.readMessageBegin()
        run = self._processMap.get(name)
        if run is not None:
            run(self, number, iprot, oprot)
            return
        iprot.skip(TType.STRUCT)
        iprot.readMessageEnd()
        self._service.door.warn("unknown_call", name=str(name)[:100])
        answer = TApplicationException(TApplicationException.UNKNOWN_METHOD, f"unknown call {str(name)[:100]}")
        oprot.writeMessageBegin(name, TMessageType.EXCEPTION, number)
        answer.write(oprot)
        oprot.writeMessageEnd()
        oprot.trans.flush()
