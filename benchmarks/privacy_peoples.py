"""Peoples and regions, written down for the lists of the names detector."""

_PEOPLES = """
afghan african-american albanian algerian american andorran angolan argentine argentinian armenian
asian-american atheist australian austrian azerbaijani bahamian bahraini bangladeshi barbadian basque
bavarian belarusian belgian belizean belizian beninese bhutanese bisexual bolivian bosnian botswanan
brazilian breton briton bruneian buddhist bulgarian burkinabe burmese burundian cambodian cameroonian
canadian catalan catholic caucasian chadian chechen chilean chinese christian colombian communist comoran
congolese croat croatian cuban cypriot czech dane danish democrat djiboutian dominican dutch dutchman
ecuadorean ecuadorian egyptian emirati eritrean estonian ethiopian fijian filipina filipino finn finnish
flemish french frenchman frenchwoman gabonese gambian gay georgian german ghanaian greek greenlander
greenlandic grenadian guatemalan guinean guyanese gypsy haitian hindu hispanic honduran hungarian icelander
icelandic indian indonesian iranian iraqi irish irishman israeli italian ivorian jamaican japanese jew
jewish jordanian kazakh kazakhstani kenyan korean kosovar kurd kurdish kuwaiti kyrgyz laotian latina latino
latvian lebanese lesbian liberian libyan liechtensteiner lithuanian luxembourger macedonian malagasy
malawian malaysian maldivian malian maltese mauritanian mauritian mexican moldovan monegasque mongolian
montenegrin mormon moroccan mozambican muslim namibian native-american nepalese nepali nicaraguan nigerian
nigerien norwegian omani pakistani palestinian panamanian papuan paraguayan peruvian polish portuguese
protestant puerto-rican qatari republican romani romanian russian rwandan salvadoran samoan saudi scot
scottish senegalese serb serbian shia shii shiite sicilian sikh singaporean slovak slovakian slovene
slovenian socialist somali somalian spaniard spanish sudanese sunni surinamese swazi swede swedish swiss
syrian taiwanese tajik tanzanian thai tibetan togolese tongan transgender trinidadian tunisian turk turkish
turkmen ugandan ukrainian uruguayan uyghur uzbek venezuelan vietnamese welsh welshman yemeni yemenite
zambian zimbabwean
"""
_REGIONS = """
alabama, alaska, arizona, arkansas, california, colorado, connecticut, delaware, florida, hawaii, idaho,
illinois, indiana, iowa, kansas, kentucky, louisiana, maine, maryland, massachusetts, michigan, minnesota,
mississippi, missouri, montana, nebraska, nevada, new hampshire, new jersey, new mexico, new york, north
carolina, north dakota, ohio, oklahoma, oregon, pennsylvania, rhode island, south carolina, south dakota,
tennessee, texas, utah, vermont, virginia, west virginia, wisconsin, wyoming, ontario, quebec, british
columbia, alberta, manitoba, saskatchewan, nova scotia, new brunswick, newfoundland, england, scotland,
wales, northern ireland, bavaria, saxony, brandenburg, hesse, thuringia, catalonia, andalusia, galicia,
lombardy, tuscany, sicily, sardinia, piedmont, brittany, normandy, provence, alsace, queensland, new south
wales, tasmania, victoria state, siberia, crimea, punjab, gujarat, kerala, tamil nadu, maharashtra,
karnataka, bengal, czech republic, holland, great britain, ivory coast, burma, swaziland, macedonia, cape
verde, turkey, vatican, hong kong, los angeles, san francisco, las vegas, new orleans, new delhi
"""
_CHINESE = """
北京 上海 天津 重庆 广州 深圳 杭州 南京 成都 武汉 西安 苏州 长沙 郑州 青岛 大连 厦门 宁波
沈阳 哈尔滨 济南 福州 昆明 合肥 石家庄 太原 南昌 贵阳 南宁 兰州 海口 银川 西宁 拉萨 乌鲁木齐 呼和浩特
无锡 东莞 佛山 珠海 温州 浙江 江苏 广东 山东 河南 四川 湖北 湖南 河北 福建 安徽 江西 山西
陕西 辽宁 吉林 黑龙江 云南 贵州 广西 甘肃 青海 海南 宁夏 新疆 西藏 内蒙古 台湾 香港 澳门
"""

PEOPLES = frozenset(_PEOPLES.split())
"""Nationalities and other groups that say something of a person; the plural is taken as well."""

REGIONS = (*(" ".join(name.split()) for name in _REGIONS.split(",")), *_CHINESE.split())
"""Regions larger than a city, old names of countries, and provinces and large cities in Chinese."""
