"""The keys that a ServiceMonitor may have, written by hand after the API reference of prometheus-operator (monitoring.coreos.com/v1).

Kubernetes' own schema, which kubernetes-validate has, does not cover other resources. This lists the keys that a manifest for one
service may need, with their types; an unlisted key is refused, so that a slip of the pen is. The operator's own further validation is
not included.
"""

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_COUNT: Final = {"type": "integer"}
_LABELS: Final = {"type": "object", "additionalProperties": _TEXT}
_TEXTS: Final = {"type": "array", "items": _TEXT}


def _of(required: tuple[str, ...] = (), **properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_SECRET_KEY: Final = _of(("key",), name=_TEXT, key=_TEXT, optional=_FLAG)
_SECRET_OR_CONFIG_MAP: Final = _of(secret=_SECRET_KEY, configMap=_SECRET_KEY)
_TLS: Final = _of(
    ca=_SECRET_OR_CONFIG_MAP, cert=_SECRET_OR_CONFIG_MAP, keySecret=_SECRET_KEY, serverName=_TEXT, insecureSkipVerify=_FLAG,
    caFile=_TEXT, certFile=_TEXT, keyFile=_TEXT, minVersion=_TEXT, maxVersion=_TEXT,
)  # fmt: skip
_RELABELING: Final = _of(
    sourceLabels=_TEXTS,
    separator=_TEXT,
    targetLabel=_TEXT,
    regex=_TEXT,
    modulus=_COUNT,
    replacement=_TEXT,
    action=_TEXT,
)
_ENDPOINT: Final = _of(
    port=_TEXT,
    targetPort={"type": ["string", "integer"]},
    path=_TEXT,
    scheme={"enum": ["http", "https", "HTTP", "HTTPS"]},
    params={"type": "object", "additionalProperties": _TEXTS},
    interval=_TEXT,
    scrapeTimeout=_TEXT,
    honorLabels=_FLAG,
    honorTimestamps=_FLAG,
    followRedirects=_FLAG,
    tlsConfig=_TLS,
    authorization=_of(type=_TEXT, credentials=_SECRET_KEY),
    relabelings={"type": "array", "items": _RELABELING},
    metricRelabelings={"type": "array", "items": _RELABELING},
)
_EXPRESSION: Final = _of(
    ("key", "operator"), key=_TEXT, operator={"enum": ["In", "NotIn", "Exists", "DoesNotExist"]}, values=_TEXTS
)
SERVICE_MONITOR: Final = _of(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"enum": ["monitoring.coreos.com/v1"]},
    kind={"enum": ["ServiceMonitor"]},
    metadata=_of(("name",), name=_TEXT, namespace=_TEXT, labels=_LABELS, annotations=_LABELS),
    spec=_of(
        ("selector", "endpoints"),
        jobLabel=_TEXT,
        targetLabels=_TEXTS,
        podTargetLabels=_TEXTS,
        sampleLimit=_COUNT,
        targetLimit=_COUNT,
        labelLimit=_COUNT,
        attachMetadata=_of(node=_FLAG),
        selector=_of(matchLabels=_LABELS, matchExpressions={"type": "array", "items": _EXPRESSION}),
        namespaceSelector=_of(any=_FLAG, matchNames=_TEXTS),
        endpoints={"type": "array", "items": _ENDPOINT},
    ),
)
