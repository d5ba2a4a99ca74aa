"""Writes records.json: records of event files as TensorBoard's own writer makes them.

Run with requirements.txt installed: python tests/tensorboard/make_records.py
"""

import io
import json
import math
from pathlib import Path

from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

WALL_TIME = 1700000000.25


def record(**fields):
    """The bytes of one event in hexadecimal."""
    file = io.BytesIO()
    RecordWriter(file).write(event_pb2.Event(wall_time=WALL_TIME, **fields).SerializeToString())
    return file.getvalue().hex()


def scalars(*pairs):
    values = [summary_pb2.Summary.Value(tag=tag, simple_value=value) for tag, value in pairs]
    return summary_pb2.Summary(value=values)


def text(tag, content):
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
    shape = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
    value = summary_pb2.Summary.Value(
        tag=tag,
        metadata=summary_pb2.SummaryMetadata(plugin_data=plugin),
        tensor=tensor_pb2.TensorProto(dtype=7, string_val=[content.encode()], tensor_shape=shape),
    )
    return summary_pb2.Summary(value=[value])


def restart(step):
    return record(step=step, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))


records = {
    "wallTime": WALL_TIME,
    "version": record(file_version="brain.Event:2"),
    "restartAt0": restart(0),
    "restartAt301": restart(301),
    "scalars": record(step=300, summary=scalars(("train/loss", 2.5), ("train/learning_rate", 0.1))),
    "laterThan32Bits": record(step=2**33 + 5, summary=scalars(("train/loss", -1e-30))),
    "notFinite": record(step=1, summary=scalars(("a", math.inf), ("b", math.nan))),
    "text": record(step=7, summary=text("samples", "ein Haus → a house " + 20 * "猫")),
}
Path(__file__).with_name("records.json").write_text(json.dumps(records, indent=2) + "\n")
