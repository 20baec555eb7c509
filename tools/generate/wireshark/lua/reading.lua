-- Reads messages by their descriptions, and adds what it reads to a tree; without a tree it only checks.

-- The bytes of one message, and how far they have been read.
local Cursor = {}
Cursor.__index = Cursor

local function cursor_of(bytes, parameters, relation_of)
  local self = {bytes = bytes, size = bytes:len(), at = 0, parameters = parameters, relation_of = relation_of}
  self.sizes, self.found = {}, {}
  return setmetatable(self, Cursor)
end

-- An empty range is not permitted after the last byte.
function Cursor:range(size)
  return self.bytes:range(size == 0 and self.at == self.size and self.at - 1 or self.at, size)
end

function Cursor:left()
  return self.size - self.at
end

function Cursor:refuse(path, ...)
  error({path = path, at = self.at, text = string.format(...)}, 0)
end

function Cursor:take(size, path)
  if size > self:left() then
    self:refuse(path, "needs %d more bytes, %d are left", size, self:left())
  end
  local range = self:range(size)
  self.at = self.at + size
  return range
end

local function add(tree, ...)
  return tree and tree:add(...)
end

local function append(item, text)
  if item and text and text ~= "" then
    item:append_text(text)
  end
end

-- Add a node that reaches over what `read` reads, which gets the node.
local function node(cursor, tree, field, label, read)
  local start = cursor.at
  local item = tree and tree:add(field, cursor:range(cursor:left())):set_text(label)
  read(item)
  if item then
    item:set_len(cursor.at - start)
  end
  return item
end

local READ = {} -- each returns the item that it has added, and what it is where that is not the element

local with_descriptions = false

-- Return whether a condition holds, by the parameters and the earlier fields of the same structure.
local HOLDS = {}

local function holds(cursor, only)
  return only == nil or HOLDS[only.is](cursor, only)
end

function HOLDS.set(cursor, only)
  return cursor.parameters[only.name] == true
end

HOLDS["since"] = function(cursor, only)
  return cursor.parameters.proto_version >= only.version
end

HOLDS["until"] = function(cursor, only)
  return cursor.parameters.proto_version <= only.version
end

function HOLDS.bit(cursor, only)
  return math.floor((cursor.sizes[only.name] or 0) / only.mask) % 2 == 1
end

HOLDS["not"] = function(cursor, only)
  return not holds(cursor, only.terms[1])
end

function HOLDS.all(cursor, only)
  for _, term in ipairs(only.terms) do
    if not holds(cursor, term) then
      return false
    end
  end
  return true
end

function HOLDS.any(cursor, only)
  for _, term in ipairs(only.terms) do
    if holds(cursor, term) then
      return true
    end
  end
  return false
end

local function read_element(cursor, element, path, label, tree)
  if not holds(cursor, element.only) then
    return
  end
  local item, row = READ[element.kind](cursor, element, path, label, tree)
  local about = (row or element).about
  if item and with_descriptions and about then
    item:append_text(" [" .. about .. "]")
  end
end

local function read_all(cursor, elements, path, tree)
  local outer = cursor.sizes
  cursor.sizes = {}
  for _, element in ipairs(elements) do
    read_element(cursor, element, path .. "." .. element.name, element.name, tree)
  end
  cursor.sizes = outer
end

-- Read a structure inside another: its only element stands for it, others are below a node.
local function read_inside(cursor, structure, field, path, label, tree)
  if structure.alone then
    return read_element(cursor, structure.elements[1], path, label, tree)
  end
  return node(cursor, tree, field, label, function(item) read_all(cursor, structure.elements, path, item) end)
end

local function bits_in_words(bits, number)
  local words = {}
  for _, bit in ipairs(bits) do
    if math.floor(number / bit.mask) % 2 == 1 then
      words[#words + 1] = bit.name
      number = number - bit.mask
    end
  end
  return #words > 0 and table.concat(words, ", ") or "none", number
end

local function checked(cursor, element, number, path)
  if element.constant and number ~= element.constant then
    cursor:refuse(path, "must be %s, not %s", element.constant, number)
  elseif element.values and not element.values[number] then
    cursor:refuse(path, "cannot be %s", number)
  elseif element.bits then
    local words, unknown = bits_in_words(element.bits, number)
    if unknown ~= 0 then
      cursor:refuse(path, "has unknown bits: %s", number)
    end
    return " (" .. words .. ")"
  end
  return element.size == 8 and element.values and " (" .. element.values[number] .. ")"
end

function READ.number(cursor, element, path, label, tree)
  local start = cursor.at
  local range = cursor:take(element.size, path)
  local number = tonumber(tostring(TYPES[element.type][3](range)))
  local item = add(tree, element.field, range)
  if item and element.type == "lsn" then
    item:set_text(string.format("%s: %X/%X", label, range:range(0, 4):uint(), range:range(4, 4):uint()))
  elseif item and label ~= element.name then
    item:set_text(string.format("%s: %s", label, tostring(number)))
  end
  cursor.at = start
  append(item, checked(cursor, element, number, path))
  cursor.at = start + element.size
  cursor.sizes[element.name], cursor.found[path] = number, number
  local relation = element.name == "relation_oid" and cursor.relation_of(number)
  if relation then
    cursor.relation = relation
    append(item, " (" .. relation.name .. ")")
  end
  return item
end

-- Return an item, with its label instead of the name of the element.
local function labelled(item, element, label)
  if item and label ~= element.name then
    item:set_text(label .. item.text:sub(#element.name + 1))
  end
  return item
end

local MICROSECONDS = Int64(1000000)
local EPOCH = Int64(946684800) -- 2000-01-01 in Unix time

-- Microseconds since 2000, which can be negative.
function READ.time(cursor, element, path, label, tree)
  local range = cursor:take(element.size, path)
  local time = range:int64()
  local seconds, rest = time / MICROSECONDS, time % MICROSECONDS
  if rest < Int64(0) then
    seconds, rest = seconds - Int64(1), rest + MICROSECONDS
  end
  local item = add(tree, element.field, range, NSTime.new((seconds + EPOCH):tonumber(), rest:tonumber() * 1000))
  return labelled(item, element, label)
end

function READ.double(cursor, element, path, label, tree)
  local range = cursor:take(element.size, path)
  return labelled(add(tree, element.field, range), element, label)
end

function READ.string(cursor, element, path, label, tree)
  cursor.raw = cursor.raw or cursor.bytes:raw()
  local stop = cursor.raw:find("\0", cursor.at + 1, true)
  if not stop then
    cursor:refuse(path, "has no zero byte at its end")
  end
  local range = cursor:take(stop - cursor.at, path)
  local text = range:range(0, range:len() - 1):string(ENC_UTF_8)
  local item = tree and tree:add_packet_field(element.field, range, ENC_UTF_8)
  if item and label ~= element.name then
    item:set_text(label .. ": " .. text)
  end
  cursor.found[path] = text
  return item
end

local SHOWN = 120 -- bytes of a value that are shown after its name

-- Return the front of a value as text, else as hexadecimal digits, and whether it is text.
local function preview(range)
  if range:len() == 0 then
    return "''", true
  end
  local front = range:range(0, math.min(range:len(), SHOWN))
  local raw, text, more = front:raw(), front:string(ENC_UTF_8), ""
  if front:len() < range:len() then
    raw = raw:gsub("[\192-\255]?[\128-\191]*$", "")
    text, more = text:sub(1, #raw), "…"
  end
  if text == raw and not raw:find("%c") then
    return "'" .. text .. "'" .. more, true
  end
  return tostring(front:bytes()):lower() .. more, false
end

function READ.bytes(cursor, element, path, label, tree)
  local size = element.size or element.length and cursor.sizes[element.length] or cursor:left()
  local range = cursor:take(size, path)
  local item = labelled(add(tree, element.field, range), element, label)
  cursor.payload = not element.length and not element.size and range or nil
  if item then
    local shown, readable = preview(range)
    cursor.preview = " " .. shown
    append(item, readable and " = " .. shown)
  end
  return item
end

-- A part with a length ends where that says; the bytes that it does not know are no message that a frame carries.
function READ.part(cursor, element, path, label, tree)
  local size, outer = element.length and cursor.sizes[element.length], cursor.size
  if size and size > cursor:left() then
    cursor:refuse(path, "needs %d more bytes, %d are left", size, cursor:left())
  elseif size then
    cursor.size = cursor.at + size
  end
  local item = read_inside(cursor, PARTS[element.part], element.field, path, label, tree)
  if size then
    cursor.size, cursor.payload = outer, nil
  end
  return item
end

READ["repeat"] = function(cursor, element, path, _, tree)
  local relation = element.name == "columns" and cursor.relation
  local i, count = 0, element.times or element.count and cursor.sizes[element.count]
  while count and i < count or not count and cursor:left() > 0 do
    local column = relation and relation.columns[i + 1]
    local label = string.format("%s[%d]%s", element.name, i, column and " (" .. column .. ")" or "")
    read_inside(cursor, element.item, element.field, string.format("%s[%d]", path, i), label, tree)
    i = i + 1
  end
end

-- The tag of a value represents it, and its content is below; the tag of another choice is a field next to its content.
-- An optional choice is followed by a constant, by which one sees that it is absent.
function READ.choice(cursor, element, path, label, tree)
  local tag_path = element.valued and path or path:sub(1, #path - #element.name) .. element.tag_name
  if cursor:left() == 0 then
    cursor:refuse(tag_path, "is missing")
  end
  local tag = cursor.bytes:range(cursor.at, 1):uint()
  local alternative = element.alternatives[tag]
  if tag == element.before then
    return
  elseif not alternative or not holds(cursor, alternative.only) then
    cursor:refuse(tag_path, "has no tag %d", tag)
  end
  local item = add(tree, element.tag, cursor:take(1, tag_path))
  local content = alternative.part and PARTS[alternative.part] or alternative.content
  cursor.preview = nil
  if item and element.valued then
    item:set_text(label .. ": " .. alternative.name)
  end
  if content and element.valued and not content.alone then
    read_all(cursor, content.elements, path, item)
  elseif content then
    read_inside(cursor, content, element.field, path, element.name, element.valued and item or tree)
  end
  append(element.valued and item, cursor.preview)
  return item, alternative
end
