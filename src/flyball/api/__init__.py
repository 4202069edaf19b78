"""What objects are: kinds as classes, their parts, their values, and the way to bytes and back.

Read in this order: `naming` (attributes and JSON keys), `model` (what a field says), `values`, `quantity`, `duration`
(Kubernetes' values), `markers` (the words of constraints), `metadata`, `conditions`, `resource` (kinds), `dynamic`
(kinds without a class), `codec` (bytes to objects and back; `lenient` and `times` are its exceptions), `changes` (what
to send so that nothing is lost), and at last what makes a kind known to a server: `schema` and `crd`.

Promises: decoding never fails on what a server may send. What an object does not say is not sent. Fields that a class
does not know survive a read, a change and a write. A class that no server would take as a CRD is refused when it is
made.
"""

from flyball.api.changes import difference, merged
from flyball.api.codec import decode, encode, from_dict, origin, to_dict
from flyball.api.conditions import Status, find_condition, is_false, is_true, set_condition
from flyball.api.crd import crd_of
from flyball.api.dynamic import DynamicObject, PartialObjectMetadata
from flyball.api.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    Default,
    Description,
    DescriptionLimit,
    Discriminator,
    EmbeddedResource,
    Enum,
    ExactlyOneOf,
    Example,
    Format,
    Ge,
    Gt,
    Immutable,
    Le,
    ListMapKeys,
    ListType,
    Lt,
    MapType,
    MaxItems,
    MaxLength,
    MaxProperties,
    MinItems,
    MinLength,
    MinProperties,
    MultipleOf,
    NotRequired,
    Nullable,
    Pattern,
    PreserveUnknown,
    PrintColumn,
    Rule,
    Schema,
    SelectableField,
    SetOnce,
    StructType,
    Title,
    UniqueItems,
)
from flyball.api.metadata import Condition, ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference
from flyball.api.model import REQUIRED, UNSET, Model, ModelMeta, UnsetType, field
from flyball.api.refusal import SchemaError
from flyball.api.resource import Resource, ResourceType, Scale, Spec
from flyball.api.schema import schema_of
from flyball.api.values import Duration, Int32, Int64, IntOrString, MicroTime, Quantity, QuantityLike

__all__ = [
    "REQUIRED",
    "UNSET",
    "AtLeastOneOf",
    "AtMostOneOf",
    "Condition",
    "Default",
    "Description",
    "DescriptionLimit",
    "Discriminator",
    "Duration",
    "DynamicObject",
    "EmbeddedResource",
    "Enum",
    "ExactlyOneOf",
    "Example",
    "Format",
    "Ge",
    "Gt",
    "Immutable",
    "Int32",
    "Int64",
    "IntOrString",
    "Le",
    "ListMapKeys",
    "ListMeta",
    "ListType",
    "Lt",
    "ManagedFieldsEntry",
    "MapType",
    "MaxItems",
    "MaxLength",
    "MaxProperties",
    "MicroTime",
    "MinItems",
    "MinLength",
    "MinProperties",
    "Model",
    "ModelMeta",
    "MultipleOf",
    "NotRequired",
    "Nullable",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "Pattern",
    "PreserveUnknown",
    "PrintColumn",
    "Quantity",
    "QuantityLike",
    "Resource",
    "ResourceType",
    "Rule",
    "Scale",
    "Schema",
    "SchemaError",
    "SelectableField",
    "SetOnce",
    "Spec",
    "Status",
    "StructType",
    "Title",
    "UniqueItems",
    "UnsetType",
    "crd_of",
    "decode",
    "difference",
    "encode",
    "field",
    "find_condition",
    "from_dict",
    "is_false",
    "is_true",
    "merged",
    "origin",
    "schema_of",
    "set_condition",
    "to_dict",
]
